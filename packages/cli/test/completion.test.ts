// Completion scripts from the real command, in a real bash.
import { execFile } from 'node:child_process';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { programFile } from '../../server/test/support/programs.ts';
import { nouns } from '../src/commands.ts';

const command = await programFile('command');
const execute = promisify(execFile);

let directory: string;
const scripts = new Map<string, string>();
beforeAll(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await execute(process.execPath, [command, 'completion', shell]);
    scripts.set(shell, stdout);
  }
  await fs.writeFile(join(directory, 'bash'), scripts.get('bash')!);
  // The command of the script, for the names of profiles.
  await fs.writeFile(
    join(directory, 'signalbox'),
    '#!/bin/sh\n[ "$1 $2 $3" = "profiles list --quiet" ] && echo one && echo two\n',
    {
      mode: 0o755,
    },
  );
});
afterAll(() => fs.rm(directory, { recursive: true }));

/** What bash offers for the last of the words. */
async function complete(...words: string[]): Promise<string[]> {
  const program = `set -u; source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _signalbox; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await execute('bash', ['--norc', '-c', program, join(directory, 'bash'), 'signalbox', ...words], {
    env: { PATH: `${directory}:${process.env.PATH}` },
  });
  return stdout.trim().split('\n').filter(Boolean);
}

test('bash completes commands, their verbs, options, values and profiles', async () => {
  expect(await complete('')).toEqual(nouns.map(({ name }) => name));
  expect(await complete('lis')).toEqual(['listen']);
  expect(await complete('sessions', 'wat')).toEqual(['watch']);
  expect(await complete('sessions', 'list', '--st')).toEqual(['--status']);
  expect(await complete('sessions', 'list', '--status', 'w')).toEqual(['waiting']);
  expect(await complete('sessions', 'list', '--status', '=', 'w')).toEqual(['waiting']);
  expect(await complete('sessions', 'list', '--status', '=')).toContain('running');
  expect(await complete('sessions', 'list', '--profile', '')).toEqual(['one', 'two']);
  expect(await complete('start', '--po')).toEqual(['--port']);
  expect(await complete('start', '--h')).toEqual(['--host', '--help']);
  for (const nothing of [
    ['sessions', 'list', '--limit', ''],
    ['nonsense', '--x'],
    ['sessions', 'nonsense', '-'],
    ['files', 'upload', ''],
  ])
    expect(await complete(...nothing)).toEqual([]);
});

test('every command and option is in each script, and an unknown shell is refused', async () => {
  for (const { name, load } of nouns) {
    for (const { name: verb, options = {} } of await load()) {
      for (const [shell, script] of scripts) {
        const missing = [
          name,
          verb,
          ...Object.entries(options).flatMap(([option, { hidden }]) => (hidden ? [] : [option])),
        ];
        expect(
          missing.filter((word) => !script.includes(word)),
          shell,
        ).toEqual([]);
      }
    }
  }
  await expect(execute(process.execPath, [command, 'completion', 'tcsh'])).rejects.toMatchObject({ code: 1 });
});
