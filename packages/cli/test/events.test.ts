// `signalbox events verify` as a process: its output and its exit status.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Event } from '@signalbox/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { chainOf } from '../../client/test/event-records.ts';
import { programFile } from '../../server/test/support/programs.ts';

const command = await programFile('command');
const apiKey = 'sbk_test_secret';
const log = chainOf(40);
const last = `40:${log[39]!.hash}`;
const tampered = log.with(16, { ...log[16]!, outcome: 'denied' });
const lines = (events: readonly Event[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('');

let directory: string;
beforeEach(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'sb-'));
});
afterEach(() => fs.rm(directory, { recursive: true }));

async function verify(args: string[], { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {}) {
  const child = spawn(process.execPath, [command, 'events', 'verify', ...args], {
    env: { PATH: process.env.PATH, ...env },
    cwd: directory,
  });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  expect(stdout + stderr).not.toContain(apiKey);
  return { code: code as number, stdout, stderr };
}

async function fileOf(content: string): Promise<string> {
  await fs.writeFile(join(directory, 'events.jsonl'), content);
  return 'events.jsonl';
}

test('an intact file gives the number of records, and the checkpoint for the next verification', async () => {
  const file = await fileOf(lines(log));
  const expected = { code: 0, stdout: `The log is intact: 40 records, 1 to 40.\nCheckpoint: ${last}\n`, stderr: '' };
  expect(await verify(['--file', file])).toEqual(expected);
  expect(await verify(['--file', '-', '--checkpoint', last], { input: lines(log).replaceAll('\n', '\r\n') })).toEqual(
    expected,
  );
  const found = await verify(['--file', file, '--json']);
  expect(JSON.parse(found.stdout)).toMatchObject({ ok: true, count: 40, last: { sequence: 40 } });
});

test('a tampered file gives the first wrong record with its line, and exit status 1', async () => {
  const file = await fileOf(lines(tampered));
  const { code, stderr, stdout } = await verify(['--file', file]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toBe(
    'signalbox: line 17 of events.jsonl: changed: Record 17 was changed: its hash does not match its content. (evt_17) The 16 records before it are intact.\n',
  );
  const json = await verify(['--file', file, '--json']);
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([1, { ok: false, sequence: 17, problem: 'changed' }]);
  expect((await verify(['--file', await fileOf(lines(log.slice(0, 30))), '--checkpoint', last])).stderr).toMatch(
    /^signalbox: cut_short: /,
  );
  expect((await verify(['--file', await fileOf('sequence,eventId\r\n1,evt_1\r\n')])).stderr).toContain('format=jsonl');
});

test('the whole log of a service is verified', async () => {
  const seen: unknown[] = [];
  const server = createServer((request, response) => {
    seen.push([request.method, request.url, request.headers.authorization]);
    if (request.headers.authorization !== `Bearer ${apiKey}`) response.writeHead(401).end('{}');
    else
      response.writeHead(200, { 'content-type': 'application/jsonl' }).end(lines(seen.length === 1 ? log : tampered));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await verify(['--url', url], { env: { SIGNALBOX_API_KEY: apiKey } })).toMatchObject({ code: 0, stderr: '' });
  expect(seen).toEqual([['GET', '/api/v1/events/export', `Bearer ${apiKey}`]]);
  const env = { SIGNALBOX_API_KEY: apiKey, SIGNALBOX_URL: url };
  expect(await verify([], { env })).toMatchObject({ code: 1, stderr: expect.stringContaining('changed: Record 17') });
  const refused = await verify([], { env: { ...env, SIGNALBOX_API_KEY: 'sbk_other' } });
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^signalbox: .*401/) });
  expect(refused.stderr).not.toContain(' at ');
  server.close();
  const away = await verify(['--url', 'http://127.0.0.1:1'], { env: { SIGNALBOX_API_KEY: apiKey } });
  expect(away).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^signalbox: .*http:\/\/127\.0\.0\.1:1 .*\nStart a service with .*\n$/),
  });
});

test('wrong usage gives one line that refers to the help, and exit status 2', async () => {
  const wrong = [[], ['--checkpoint', '5:abc', '--file', 'x'], ['--file'], ['--bad']];
  for (const args of wrong) {
    const { code, stdout, stderr } = await verify(args);
    expect([code, stdout, stderr.split('\n')]).toEqual([2, '', [expect.stringContaining('See: signalbox events'), '']]);
  }
  const missing = await verify(['--file', 'no-such-file']);
  expect(missing).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^signalbox: --file no-such-file can't be read/),
  });
  expect(missing.stderr).not.toContain(' at ');
  expect(await verify(['--help'])).toMatchObject({ code: 0, stdout: expect.stringContaining('--checkpoint') });
});
