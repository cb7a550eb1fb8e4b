// Long lists, readers that leave early, hostile text and services that are gone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { programFile } from '../../server/test/support/programs.ts';
import { nouns } from '../src/commands.ts';
import { runCli } from './support/cli.ts';

// A process takes seconds to start on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const command = await programFile('command');
const evil = '\u001b]0;owned\u0007\u001b[2J\r\n\u202e山田\u2028😈'.repeat(3);

/** A service with `count` sessions in pages; `onPage` can hold back or cut a page. */
let server: Server;
let url: string;
let count: number;
let onPage: (first: number) => Promise<'cut' | undefined>;
const asked: number[] = [];

beforeEach(async () => {
  asked.length = 0;
  onPage = async () => undefined;
  server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://service');
    response.setHeader('content-type', 'application/json');
    if (pathname.startsWith('/api/v1/agents/')) return void response.end(JSON.stringify({ agent: { name: evil } }));
    const first = Number(searchParams.get('cursor') ?? 0);
    asked.push(first);
    if ((await onPage(first)) === 'cut') return void response.destroy();
    const size = Math.min(Number(searchParams.get('limit')), count - first);
    const data = Array.from({ length: size }, (_, index) => session(first + index));
    const next = first + size;
    response.end(JSON.stringify({ data, page: { hasMore: next < count, nextCursor: String(next) } }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function session(number: number) {
  const error = { code: 'x', message: evil };
  const ids = { sessionId: `ses_${String(number).padStart(8, '0')}`, agentId: 'agt_1' };
  return { ...ids, environment: 'staging', status: 'failed', turn: 1, createdAt: '2026-01-01T00:00:00.000Z', error };
}

const env = () => ({ SIGNALBOX_API_KEY: 'sbk_test', SIGNALBOX_URL: url });

function start(...argv: string[]) {
  const child = spawn(process.execPath, [command, ...argv], { env: { PATH: process.env.PATH, ...env() } });
  const over = once(child, 'close').then(([code]) => code as number);
  return { child, over };
}

test('a list is printed while it is read, and a reader that leaves ends it quietly with status 0', async () => {
  count = 1_000_000;
  let release: (() => void) | undefined;
  onPage = (first) =>
    first < 300
      ? Promise.resolve(undefined)
      : new Promise((resolve) => {
          release = () => resolve(undefined);
        });
  const { child, over } = start('sessions', 'list', '--all', '--json');
  let lines = 0;
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    lines += text.split('\n').length - 1;
  });
  // Three pages are printed while the fourth is held back.
  await expect.poll(() => lines).toBe(300);
  await expect.poll(() => release).toBeDefined();
  child.stdout.destroy();
  onPage = async () => undefined;
  release!();
  expect([await over, stderr]).toEqual([0, '']);
  // It noticed long before the end.
  expect(asked.length).toBeLessThan(1_000);
});

test('a list of 20,000 is complete, and needs as few requests as there are pages', async () => {
  count = 20_000;
  const { code, stdout } = await runCli(['sessions', 'list', '--all', '-q'], { env: env() });
  const ids = stdout.split('\n').slice(0, -1);
  expect([code, ids.length, new Set(ids).size, asked.length]).toEqual([0, 20_000, 20_000, 200]);
  const limited = await runCli(['sessions', 'list', '--limit', '150'], { env: env() });
  expect(limited.stdout.split('\n')).toHaveLength(152);
});

test('no text of a service moves the cursor, starts a line or widens a table, in any column', async () => {
  count = 5;
  for (const columns of [undefined, 60, 100, 160]) {
    const { stdout, stderr } = await runCli(['sessions', 'list'], {
      env: { ...env(), NO_COLOR: '1' },
      ...(columns && { columns }),
    });
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toHaveLength(7);
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  }
  const more = await runCli(['sessions', 'list', '--limit', '3'], { env: env(), columns: 100 });
  expect(more.stderr).toContain('--all');
});

test('a service that breaks off in the middle leaves what was printed, says so, and fails', async () => {
  count = 1_000;
  onPage = async (first) => (first >= 200 ? 'cut' : undefined);
  const { code, stdout, stderr } = await runCli(['sessions', 'list', '--all', '-q'], { env: env() });
  expect(code).toBe(1);
  expect(stdout.split('\n')).toHaveLength(201);
  expect(stderr).toMatch(/^signalbox: connection_error: .*\nCheck that the service is running .*\n$/);
});

test('no command that calls a service prints the key, or a stack, when the service is gone', async () => {
  const away = { SIGNALBOX_API_KEY: 'sbk_away_secret', SIGNALBOX_URL: 'http://127.0.0.1:1' };
  const lines: string[][] = [];
  for (const noun of nouns) {
    for (const { name, needs, arguments: args = {}, options = {} } of await noun.load()) {
      // `listen` keeps trying: the service may come back.
      if (needs === undefined || noun.name === 'listen') continue;
      const given = Object.keys(args).filter((one) => !args[one]!.optional);
      const required = Object.entries(options).flatMap(([option, { required: isRequired, type }]) =>
        isRequired ? [`--${option}=${type === 'json' ? '{}' : 'x'}`] : [],
      );
      lines.push([noun.name, name, ...given.map(() => 'ses_1'), ...required].filter(Boolean));
    }
  }
  expect(lines.length).toBeGreaterThan(60);
  await Promise.all(
    lines.map(async (argv) => {
      const { code, stdout, stderr } = await runCli(argv, { env: away, stdin: 'x' });
      expect([1, 2], `${argv.join(' ')}: ${stderr}`).toContain(code);
      expect(stderr, argv.join(' ')).toMatch(/^signalbox: /);
      expect(stdout + stderr).not.toMatch(/sbk_away|\n {4}at /);
    }),
  );
});
