// `docker exec` and `docker compose exec`, for documented.ts: STATE [compose] exec [-T] [-e NAME=VALUE] CONTAINER COMMAND …
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type Container, inContainer } from './container.ts';

const [state = '', ...words] = process.argv.slice(2);
const containers = JSON.parse(readFileSync(state, 'utf8')) as Record<string, Container>;
const env: Record<string, string> = {};
if (words[0] === 'compose') words.shift();
if (words.shift() !== 'exec') throw new Error('Only exec is known here');
while (words[0]?.startsWith('-')) {
  const option = words.shift();
  const [name = '', value = ''] = option === '-e' ? words.shift()!.split(/=(.*)/s) : [];
  if (option === '-e') env[name] = value;
  else if (option !== '-T') throw new Error(`The option ${option} is not known here`);
}
const [name = '', ...command] = words;
const container = containers[name];
if (!container) throw new Error(`There is no container ${name}`);
const { program, args, options } = inContainer({ ...container, env: { ...container.env, ...env } }, command);
process.exitCode = spawnSync(program, args, { ...options, stdio: 'inherit' }).status ?? 1;
