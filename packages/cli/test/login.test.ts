// `signalbox login` as a person uses it, and as a script does.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { programFile } from '../../server/test/support/programs.ts';
import { onTerminal } from './support/terminal.ts';

const command = await programFile('command');
const apiKey = 'sbk_right_secret';

let home: string;
let server: Server;
let url: string;
let requests: (string | undefined)[];
beforeEach(async () => {
  home = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  requests = [];
  server = createServer((request, response) => {
    requests.push(request.headers.authorization);
    const isRight = request.headers.authorization === `Bearer ${apiKey}`;
    const me = { organization: { organizationId: 'org_1', name: 'Acme' }, apiKey: { keyId: 'key_1', name: 'ci' } };
    const body = request.url === '/api/v1/me' ? me : { data: [], page: { hasMore: false, nextCursor: null } };
    response
      .writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' })
      .end(
        JSON.stringify(isRight ? body : { code: 'invalid_token', detail: 'The API key is not valid.', status: 401 }),
      );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await fs.rm(home, { recursive: true });
});

async function run(args: string[], input = '', env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [command, ...args], {
    env: { PATH: process.env.PATH, XDG_CONFIG_HOME: home, ...env },
  });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  expect(stdout + stderr).not.toContain(apiKey);
  return { code: code as number, stdout, stderr };
}

test('a person is asked for the service and the key, which is tried and never shown; then commands use it', async () => {
  const wrong = onTerminal(['login', '--url', url], { XDG_CONFIG_HOME: home, NO_COLOR: '1' });
  await wrong.shows('API key: ');
  wrong.type('sbk_wrong_secret\r');
  expect(await wrong.ended).toBe(1);
  expect(wrong.screen()).not.toContain('sbk_wrong_secret');
  expect(await fs.readdir(home)).toEqual([]);

  const login = onTerminal(['login'], { XDG_CONFIG_HOME: home, NO_COLOR: '1' });
  await login.shows('Service (http://127.0.0.1:4500): ');
  login.type(`${url}\r`);
  await login.shows('API key: ');
  // With a typing error that is corrected.
  login.type(`${apiKey}x\u007f\r`);
  expect(await login.ended, login.screen()).toBe(0);
  expect(login.screen()).toContain(`Logged in to Acme at ${url} with the key ci (key_1).`);
  expect(login.screen()).not.toContain(apiKey);
  expect((await fs.stat(join(home, 'signalbox', 'profiles.json'))).mode & 0o777).toBe(0o600);

  expect(await run(['sessions', 'list'])).toMatchObject({ code: 0 });
  expect(requests.at(-1)).toBe(`Bearer ${apiKey}`);
});

test('Ctrl-C at the key stores nothing', async () => {
  const login = onTerminal(['login', '--url', url], { XDG_CONFIG_HOME: home, NO_COLOR: '1' });
  await login.shows('API key: ');
  login.type('sbk_half\u0003');
  expect(await login.ended).toBe(1);
  expect(await fs.readdir(home)).toEqual([]);
});

test('a script logs in from standard input, switches between profiles, and logs out', async () => {
  expect(await run(['login', '--url', url], `${apiKey}\n`)).toMatchObject({ code: 0 });
  expect(await run(['login', '--url', url, '--profile', 'second'], apiKey)).toMatchObject({ code: 0 });
  expect(await run(['login', '--url', url], '')).toMatchObject({ code: 1 });
  expect(await run(['login', '--url', 'ftp://x'], apiKey)).toMatchObject({ code: 2 });
  expect(await run(['login', '--url', url, '--profile', '../x'], apiKey)).toMatchObject({ code: 2 });
  const listed = async () =>
    (await run(['profiles', 'list', '--json'])).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  expect(await listed()).toMatchObject([
    { profile: 'default', url, key: 'ci (key_1)', isCurrent: false },
    { profile: 'second', isCurrent: true },
  ]);
  expect((await run(['profiles', 'list'])).stdout).toMatch(/\* +second +http/);
  expect(await run(['profiles', 'use', 'default'])).toMatchObject({ code: 0 });
  expect(await run(['profiles', 'use', 'third'])).toMatchObject({ code: 1 });
  expect((await run(['logout', '--profile', 'second'])).stdout).toContain('stays valid');
  expect(await listed()).toMatchObject([{ profile: 'default', isCurrent: true }]);
  expect(await run(['logout'])).toMatchObject({ code: 0 });
  const after = await run(['sessions', 'list']);
  expect(after.code).toBe(2);
  expect(after.stderr).toContain('signalbox login');
});

test('an account without a home directory can use variables, and the error of login says what to set', async () => {
  const env = { XDG_CONFIG_HOME: '/proc/none' };
  expect(await run(['sessions', 'list'], '', { ...env, SIGNALBOX_API_KEY: apiKey, SIGNALBOX_URL: url })).toMatchObject({
    code: 0,
  });
  const refused = await run(['login', '--url', url], apiKey, env);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('Set XDG_CONFIG_HOME');
});

test('a URL with a password, a query or a fragment is refused before the key is read', async () => {
  for (const part of ['?a=b', '#a', '@x']) {
    const wrong = part === '@x' ? url.replace('://', '://user:hush@') : `${url}/${part}`;
    const { code, stderr } = await run(['login', '--url', wrong], `${apiKey}\n`);
    expect([code, stderr]).toEqual([
      2,
      'signalbox: login: --url must be the URL of a service, without a password, a query or a fragment. See: signalbox login --help\n',
    ]);
  }
  expect(requests).toEqual([]);
});
