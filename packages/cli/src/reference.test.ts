import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { page, referenceOf } from '../scripts/write-reference.ts';
import { runCli } from '../test/support/cli.ts';
import { nouns } from './commands.ts';
import { exampleLine } from './help.ts';

test('the reference of the command line has every command as it is; `npm run generate` updates it', async () => {
  const text = await readFile(page, 'utf8');
  expect(text).toBe(await referenceOf(text));
});

test('every command has help with its arguments, its options and an example, in lines that fit the terminal', async () => {
  for (const { name: noun, load } of nouns) {
    for (const { name, arguments: args = {}, options = {}, examples = [] } of await load()) {
      const argv = [noun, name].filter(Boolean);
      const { code, stdout, stderr } = await runCli([...argv, '--help'], { columns: 80, env: { NO_COLOR: '1' } });
      expect([code, stderr], argv.join(' ')).toEqual([0, '']);
      for (const argument of Object.keys(args)) expect(stdout).toContain(argument.toUpperCase());
      for (const [option, { hidden }] of Object.entries(options)) if (!hidden) expect(stdout).toContain(`--${option}`);
      expect(examples.length, argv.join(' ')).toBeGreaterThan(0);
      expect(await runCli(['help', ...argv], { columns: 80, env: { NO_COLOR: '1' } })).toMatchObject({ stdout });
    }
    const help = await runCli([noun, '--help'], { columns: 80, env: { NO_COLOR: '1' } });
    expect([help.code, help.stderr]).toEqual([0, '']);
  }
});

test('an example names the program in each command that it runs', async () => {
  const lines = new Map<string, string>();
  for (const { name: noun, load } of nouns)
    for (const { name, examples = [] } of await load())
      for (const [line] of examples) lines.set(exampleLine(line), [noun, name].filter(Boolean).join(' '));
  for (const [line, command] of lines) {
    expect(line).toContain(`signalbox ${command}`);
    expect(nouns.map(({ name }) => name)).not.toContain(line.split(' ')[0]);
  }
});

test('every command that calls a service takes its URL and its profile', async () => {
  for (const { name: noun, load } of nouns) {
    for (const { name, operations, options = {} } of await load()) {
      if (!operations?.length) continue;
      const command = `${noun} ${name}`;
      expect(Object.keys(options), command).toContain('url');
      if (noun !== 'login') expect(Object.keys(options), command).toContain('profile');
    }
  }
});

test('an unknown word gets a suggestion and exit status 2', async () => {
  const wrong: [string[], string][] = [
    [['sesions', 'list'], 'there is no command "sesions" (did you mean sessions?)'],
    [['chat', 'agt_1'], 'there is no command "chat" (did you mean sessions chat?)'],
    [
      ['rotate-secret'],
      'there is no command "rotate-secret" (did you mean webhooks rotate-secret or destinations rotate-secret?)',
    ],
    [['list', 'sessions'], '(did you mean sessions list?)'],
    [['--json', 'sessions'], 'options follow the command, but --json is first'],
    [['sessions', 'lst'], 'there is no "lst" (did you mean list?)'],
    [['files', 'frown'], 'there is no "frown"; there are upload, list'],
    [['sessions', 'list', '--limt', '3'], 'there is no option --limt (did you mean --limit?)'],
    [['agents', 'get'], 'agents get: needs AGENT'],
    [['whoami'], 'set SIGNALBOX_API_KEY'],
  ];
  for (const [argv, words] of wrong) {
    const { code, stdout, stderr } = await runCli(argv);
    expect([code, stdout, stderr.trimEnd().split('\n')], argv.join(' ')).toEqual([
      2,
      '',
      [expect.stringContaining(words)],
    ]);
  }
});
