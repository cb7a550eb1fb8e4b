// `npm run bench -- --help` lists the arguments. Speed is not a test: it fails only if something breaks.
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parsePeers, runAgainst, UnknownPeer } from './against/against.ts';
import { apiRead } from './api-read.ts';
import { apiWrite } from './api-write.ts';
import { append } from './append.ts';
import { back } from './back.ts';
import { destinations } from './destinations.ts';
import { fanOut } from './fan-out.ts';
import { files } from './files.ts';
import { firstToken } from './first-token.ts';
import { floor } from './floor.ts';
import { forks } from './forks.ts';
import { growth } from './growth.ts';
import { lists } from './lists.ts';
import { manyNodes } from './many-nodes.ts';
import { nodes } from './nodes.ts';
import { parked } from './parked.ts';
import { sessions } from './sessions.ts';
import { slowReceiver } from './slow-receiver.ts';
import { start } from './start.ts';
import { streamed } from './streamed.ts';
import { profiled } from './support/profile.ts';
import { formatTable, type Row } from './support/table.ts';
import { tokens } from './tokens.ts';
import { twoNodes } from './two-nodes.ts';
import { webhookLatency } from './webhook-latency.ts';
import { webhooks } from './webhooks.ts';

const benchmarks = [
  streamed,
  apiRead,
  apiWrite,
  append,
  firstToken,
  sessions,
  floor,
  webhooks,
  webhookLatency,
  slowReceiver,
  destinations,
  fanOut,
  tokens,
  twoNodes,
  nodes,
  manyNodes,
  parked,
  back,
  growth,
  forks,
  lists,
  files,
  start,
];
const names = benchmarks.map(({ name }) => name);
const usage = `npm run bench -- [NAME …] [OPTIONS]
  NAME             ${names.join(', ')}; without one, all of them run
  --parked N       park N sessions instead of a million
  --profile        say where the CPU time goes
  --against NAME,… measure other programs instead`;

function readArguments() {
  const options = {
    parked: { type: 'string', default: '1000000' },
    profile: { type: 'boolean', default: false },
    against: { type: 'string' },
    help: { type: 'boolean', default: false },
  } as const;
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return endWith(`${(error as Error).message}\n\n${usage}`);
  }
}

function endWith(message: string): never {
  console.error(message);
  process.exit(1);
}

const { positionals: wanted, values } = readArguments();
if (values.help) {
  console.log(usage);
  process.exit();
}
if (values.against !== undefined) {
  try {
    console.log(await runAgainst(parsePeers(values.against)));
    process.exit();
  } catch (error) {
    if (error instanceof UnknownPeer) endWith(error.message);
    throw error;
  }
}
if (!/^[1-9]\d*$/.test(values.parked))
  endWith(`--parked must be a number of sessions, at least 1, not ${values.parked}`);
const options = { parkedSessions: Number(values.parked) };
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) endWith(`No benchmark ${unknown.join(', ')}. There are ${names.join(', ')}.`);

const rows: Row[] = [];
for (const { name, run } of benchmarks) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.error(`${name} …`);
  rows.push(...(values.profile ? await profiled(name, () => run(options)) : await run(options)));
}
console.log(formatTable(rows));
await writeFile(new URL('results.json', import.meta.url), `${JSON.stringify({ rows }, undefined, 2)}\n`);
// Connections that are kept alive would keep the process running.
process.exit();
