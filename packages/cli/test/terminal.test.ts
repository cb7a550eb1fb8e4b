// What a person at a terminal sees.
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type OnTerminal, onTerminal } from './support/terminal.ts';

let base: string;
let running: OnTerminal[];

beforeEach(async () => {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  running = [];
});

afterEach(async () => {
  for (const one of running) await one.kill();
  await fs.rm(base, { recursive: true, force: true });
});

function run(args: string[], env: Record<string, string> = {}): OnTerminal {
  const one = onTerminal(args, env);
  running.push(one);
  return one;
}

test('on a terminal the log is text, and the console link comes after everything that the start logged', async () => {
  const env = { SIGNALBOX_DATA_DIR: join(base, 'data'), NO_COLOR: '1' };
  const service = run(['start', '--port', '0'], env);
  const start = await service.shows('users setup-link');
  expect(start).not.toContain('{"level"');
  expect(start.indexOf('started version=')).toBeGreaterThan(0);
  expect(start.indexOf('/console/link#sbi_')).toBeGreaterThan(start.indexOf('started version='));
  const url = /(http:\S+)\/api\/v1/.exec(start)![1]!;
  await fetch(`${url}/healthz`);
  await fetch(`${url}/openapi.json`);
  await fetch(`${url}/api/v1/sessions`);
  await service.shows(/GET \/api\/v1\/sessions 401 \d+ ms req_\w+/);
  expect(service.screen()).not.toMatch(/healthz|openapi/);
  service.type('\u0003');
  expect(await service.ended).toBe(0);
});
