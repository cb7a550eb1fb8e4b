// `signalbox backup`, `restore` and `move` as processes, some of which are killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { findPostgres } from '../../embedded-postgres/src/index.ts';
import { programFile } from '../../server/test/support/programs.ts';

// Processes take seconds to start on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const command = await programFile('command');
const masterKey = Buffer.alloc(32, 3).toString('hex');
const children = new Set<ChildProcess>();

let directory: string;
let backup: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox-backup-process-'));
  backup = join(directory, 'one.backup');
  const service = spawnCommand('start', '--port', '0', '--data-dir', join(directory, 'data'));
  await untilSays(service, 'is running');
  const { code, stderr } = await run('backup', backup, '--data-dir', join(directory, 'data'));
  expect(code, stderr).toBe(0);
  service.kill('SIGTERM');
  await once(service, 'close');
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

function spawnCommand(...args: string[]): ChildProcess {
  const env = { PATH: process.env.PATH, SIGNALBOX_MASTER_KEY: masterKey };
  const child = spawn(process.execPath, [command, ...args], { env, cwd: directory });
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

async function run(...args: string[]) {
  const child = spawnCommand(...args);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')]);
  return { code: code as number, stdout, stderr };
}

function untilSays(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
      said += piece;
      if (said.includes(words)) resolve();
    });
    child.once('close', () => reject(new Error(`It ended and said: ${said}`)));
  });
}

test('a restore that is killed at any step leaves a directory that does not start, and is repeated with success', async () => {
  const dataDir = join(directory, 'restored');
  for (const step of ['Creating tables', 'Verifying']) {
    const restoring = spawnCommand('restore', backup, '--data-dir', dataDir);
    await untilSays(restoring, step);
    restoring.kill('SIGKILL');
    await once(restoring, 'close');
    const start = await run('start', '--port', '0', '--data-dir', dataDir);
    expect([start.code, start.stderr]).toEqual([1, expect.stringContaining('Run signalbox restore again')]);
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false);
  }
  // The PostgreSQL of a killed restore is still there; the next one finds it.
  const draft = { directory: join(dataDir, 'postgres.restoring'), user: 'signalbox', database: 'signalbox' };
  expect(await findPostgres(draft)).toBeDefined();
  const again = await run('restore', backup, '--data-dir', dataDir);
  expect([again.code, again.stderr]).toEqual([0, expect.stringMatching(/Restored and verified \d+ rows/)]);
  expect(again.stderr).not.toContain('Before you start');
  expect(readdirSync(dataDir)).toEqual(['postgres']);
  const key = await run('keys', 'create', '--name', 'x', '--permission', 'read', '--data-dir', dataDir);
  expect([key.code, key.stdout]).toEqual([0, expect.stringMatching(/^sbk_/)]);
});

test('a backup goes through standard output and input, and every failure is one line that says what to do', async () => {
  const piped = await run('backup', '-', '--data-dir', join(directory, 'data'), '--json');
  expect(piped.code, piped.stderr).toBe(0);
  expect(JSON.parse(piped.stderr.split('\n').at(-2)!)).toMatchObject({ masterKeyIn: 'SIGNALBOX_MASTER_KEY' });
  const checking = spawnCommand('restore', '-', '--check');
  checking.stdin!.end(readFileSync(backup));
  const [said, [code]] = await Promise.all([text(checking.stdout!), once(checking, 'close')]);
  expect([code, said]).toEqual([0, expect.stringMatching(/^The backup is whole: \d+ rows of \d+ tables/)]);

  const other = join(directory, 'other.gz');
  writeFileSync(other, gzipSync('{}\n'));
  const nowhere = ['--data-dir', join(directory, 'nowhere')];
  const failures = [
    [['backup', backup, '--data-dir', join(directory, 'data')], 'exists already. Choose another name'],
    [['backup', join(directory, 'x'), ...nowhere], 'There is no Signalbox in'],
    [['restore', other, ...nowhere], 'is not a backup of Signalbox'],
    [['restore', join(directory, 'none'), ...nowhere], 'does not exist'],
    [['restore', backup, ...nowhere, '--passphrase-file', join(directory, 'none')], "can't be read (ENOENT)"],
    [['restore', backup, '--data-dir', join(directory, 'data')], 'There is a database in'],
    [['move', ...nowhere, '--to', 'postgres://a:secret@b/c'], '--to contains a password'],
    [['move', ...nowhere, '--to', 'postgres://a@b/c'], 'There is no Signalbox in'],
  ] as const;
  const outcomes = await Promise.all(failures.map(([args]) => run(...args)));
  for (const [index, [args, words]] of failures.entries()) {
    const { code, stdout, stderr } = outcomes[index]!;
    expect([code, stdout, stderr], args.join(' ')).toEqual([1, '', expect.stringMatching(/^signalbox: [^\n]+\n$/)]);
    expect(stderr).toContain(words);
  }
  expect(statSync(backup).mode & 0o777).toBe(0o600);
});

test('a check of an installation starts its database, prints a line for each check, and fails only if a check does', async () => {
  const good = await run('doctor', '--data-dir', join(directory, 'data'), '--json');
  const findings = good.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect([good.code, good.stderr]).toEqual([0, '']);
  expect(findings.find(({ check }) => check === 'database.server').message).toBe('the embedded PostgreSQL starts');
  expect(findings.find(({ check }) => check === 'secrets').status).toBe('ok');
  writeFileSync(join(directory, 'file'), '');
  const bad = await run('doctor', '--data-dir', join(directory, 'file'));
  expect([bad.code, bad.stdout]).toEqual([
    1,
    expect.stringMatching(/^failed +data_directory +\S+ is not a directory\n +Choose/m),
  ]);
});
