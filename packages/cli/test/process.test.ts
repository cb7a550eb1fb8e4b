// The real command in its own processes, as a person and a process manager use it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Chunk, Signalbox } from '@signalbox/client';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { programFile } from '../../server/test/support/programs.ts';
import { runCli } from './support/cli.ts';

const command = await programFile('command');

let base: string;
let dataDir: string;
let running: Running[];
let secrets: string[];
/** An installation that was started and stopped, and its first key: creating one takes seconds of processor time. */
let prepared: { base: string; apiKey: string };

async function begin(): Promise<void> {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  dataDir = join(base, 'data');
  running = [];
  secrets = [];
}

async function end(): Promise<void> {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  await stopLeftPostgres();
  const printed = running.map(({ output }) => output.stdout + output.stderr).join('');
  for (const secret of secrets) expect(printed).not.toContain(secret);
}

beforeAll(async () => {
  await begin();
  const service = await start();
  prepared = { base, apiKey: await createKey() };
  service.child.kill('SIGINT');
  await service.ended;
  await end();
});
afterAll(() => fs.rm(prepared.base, { recursive: true, force: true }));
beforeEach(begin);
afterEach(async () => {
  await end();
  await fs.rm(base, { recursive: true, force: true });
});

/** Starts a copy of the prepared installation. */
async function startPrepared() {
  execFileSync('cp', ['-a', join(prepared.base, 'data'), dataDir]);
  secrets.push(prepared.apiKey);
  return { ...(await start()), apiKey: prepared.apiKey };
}

interface Running {
  child: ChildProcess;
  output: { stdout: string; stderr: string };
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | string>;
  /** Resolves when the text is printed; rejects with what was printed instead. */
  printed(text: string | RegExp): Promise<string>;
}

type Program = readonly [string, ...string[]];
const node: Program = [process.execPath, command];

function run(args: string[], env: Record<string, string> = {}, [program, ...first]: Program = node): Running {
  const child = spawn(program, [...first, ...args], {
    env: { PATH: process.env.PATH, SIGNALBOX_DATA_DIR: dataDir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  const one: Running = {
    child,
    output,
    ended,
    async printed(text) {
      const isThere = () => output.stderr.search(text) >= 0 || output.stdout.search(text) >= 0;
      let over = false;
      void ended.then(() => {
        over = true;
      });
      while (!isThere()) {
        if (over) throw new Error(`It ended without printing ${text}:\n${output.stdout}${output.stderr}`);
        await Promise.race([once(child.stderr!, 'data'), once(child.stdout!, 'data'), ended]);
      }
      return output.stderr;
    },
  };
  running.push(one);
  return one;
}

async function start(env: Record<string, string> = {}, port = '0'): Promise<Running & { url: string }> {
  const service = run(['start', '--port', port], env);
  const text = await service.printed('Create key');
  return { ...service, url: /(http:\S+)\/api\/v1/.exec(text)![1]! };
}

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(' ');

/** A scripted model that says this many words, with this delay between them. */
const talker = (count: number, tokenDelayMs: number) => ({
  provider: 'scripted' as const,
  model: 'any',
  settings: { script: [{ text: words(count), tokenDelayMs }] },
});

/** A command that ends by itself: its exit status and its output. */
async function finish(args: string[], env?: Record<string, string>) {
  const one = run(args, env);
  return { code: await one.ended, ...one.output };
}

async function createKey(): Promise<string> {
  const { code, stdout, stderr } = await finish(['keys', 'create', '--name', 'first', '--permission', 'admin']);
  expect(code, stderr).toBe(0);
  // Not searched for secrets: this output is where the secret belongs.
  running.pop();
  const secret = stdout.trimEnd();
  expect(stdout).toBe(`${secret}\n`);
  secrets.push(secret);
  return secret;
}

async function postgresPid(): Promise<number> {
  const text = await fs.readFile(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8').catch(() => '');
  return Number.parseInt(text, 10) || 0;
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function stopLeftPostgres(): Promise<void> {
  const pid = await postgresPid();
  if (!pid) return;
  process.kill(pid, 'SIGQUIT');
  await expect.poll(postgresPid).toBe(0);
}

test('after Ctrl-C and another start all data is there, and nothing is left running', async () => {
  const first = await start();
  const apiKey = await createKey();
  const client = new Signalbox({ apiKey, baseUrl: first.url });
  await client.environments.create({ name: 'dev' });
  for (const path of ['/openapi.json', '/llms.txt', '/healthz']) {
    expect((await fetch(first.url + path)).status, path).toBe(200);
  }
  expect((await fs.stat(join(dataDir, 'master.key'))).mode & 0o777).toBe(0o600);
  const pid = await postgresPid();
  expect(pid).toBeGreaterThan(0);

  first.child.kill('SIGINT');
  expect(await first.ended).toBe(0);
  expect(await postgresPid()).toBe(0);
  // It ended before the service, but the process that inherits it may reap it a little later.
  await expect.poll(() => isThere(pid)).toBe(false);

  const second = await start();
  const again = new Signalbox({ apiKey, baseUrl: second.url });
  const names = (await again.environments.list()).data.map(({ name }) => name);
  expect(names.toSorted()).toEqual(['dev', 'production', 'staging']);
  second.child.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('messages for people are on stderr; stdout has only the log, as JSON, with one line about the new database', async () => {
  const service = await start();
  await fetch(`${service.url}/healthz`);
  await service.printed('"route":"/healthz"');
  service.child.kill('SIGINT');
  await service.ended;
  const lines = service.output.stdout.trim().split('\n');
  for (const line of lines)
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), time: expect.any(String) });
  const ofDatabase = lines.filter((line) => /tables|migrat|index/.test(line));
  expect(ofDatabase.map((line) => JSON.parse(line))).toMatchObject([
    { msg: 'created the tables of the database', migrations: expect.any(Number), durationMs: expect.any(Number) },
  ]);
  expect(service.output.stderr).toContain(`API          ${service.url}/api/v1`);
  expect(service.output.stderr).toContain(
    `Console      http://localhost:${new URL(service.url).port}/console/link#sbi_`,
  );
  expect(service.output.stderr).toContain(`Reference    ${service.url}/docs`);
  expect(service.output.stderr).toContain('npx signalbox keys create --name first --permission admin');
});

test('a key can be created while the service is stopped, and a wrong directory creates no installation', async () => {
  const nowhere = await finish(['keys', 'create', '--name', 'a', '--permission', 'read']);
  expect(nowhere).toMatchObject({ code: 1, stdout: '' });
  expect(nowhere.stderr).toMatch(/^signalbox: There is no Signalbox in .*\n$/);
  await expect(fs.stat(dataDir)).rejects.toThrow('ENOENT');

  const service = await startPrepared();
  service.child.kill('SIGINT');
  await service.ended;
  const apiKey = await createKey();
  expect(await postgresPid()).toBe(0);
  const create = (...args: string[]) => finish(['keys', 'create', '--name', 'a', ...args]);
  const wrong = await create('--scopes', 'sessions:read,all', '--agents', 'support,billing');
  expect(wrong.code).toBe(1);
  for (const option of ['--scopes', '--agents']) expect(wrong.stderr).toContain(option);
  const scoped = await create('--scopes', 'approvals:decide,sessions:read', '--json');
  running.pop();
  secrets.push(JSON.parse(scoped.stdout).secret);
  expect(JSON.parse(scoped.stdout)).toMatchObject({ permission: null, scopes: ['sessions:read', 'approvals:decide'] });
  const again = await start();
  expect((await new Signalbox({ apiKey, baseUrl: again.url }).me()).permission).toBe('admin');
});

test('users are invited, reset and removed on the host, and only stdout has the links', async () => {
  const service = await startPrepared();
  const { origin } = new URL(service.url);
  const users = async (...args: string[]) => {
    const { code, stdout, stderr } = await finish(['users', ...args]);
    running.pop();
    expect(stderr === '' || /^(Removed|Valid once, within)/.test(stderr) || code !== 0, stderr).toBe(true);
    return { code, stdout: stdout.trim(), stderr };
  };
  const accept = async (link: string, given: object) => {
    const token = new URL(link).hash.slice(1);
    secrets.push(token);
    const response = await fetch(`${origin}/console/api/links/accept`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify({ token, ...given }),
    });
    return response.status;
  };
  const password = 'seven small red boats';
  const older = (await users('setup-link')).stdout;
  const setup = (await users('setup-link')).stdout;
  // The command was not given the port: it knows what the service announced.
  expect(new URL(setup).origin).toBe(`http://localhost:${new URL(origin).port}`);
  expect(await accept(older, { name: 'Eve', email: 'eve@example.com', password, organizationName: 'Evil' })).toBe(404);
  expect(await accept(setup, { name: 'Mara', email: 'mara@example.com', password, organizationName: 'Acme' })).toBe(
    200,
  );
  expect(await users('setup-link')).toMatchObject({ code: 1, stderr: expect.stringContaining('has people already') });
  const { stdout: invitation, stderr: validity } = await users(
    'invite',
    '--role',
    'viewer',
    '--email',
    'ola@example.com',
  );
  expect(validity).toBe('Valid once, within 7 days.\n');
  expect(await accept(invitation, { name: 'Ola', password })).toBe(200);
  const listed = JSON.parse((await users('list', '--json')).stdout);
  expect(listed.map(({ email, role }: { email: string; role: string }) => [email, role])).toEqual([
    ['mara@example.com', 'owner'],
    ['ola@example.com', 'viewer'],
  ]);
  const reset = (await users('reset-password', '--user', 'mara@example.com')).stdout;
  expect(await accept(reset, { password: 'nine slow green trains' })).toBe(200);
  expect(await users('remove', '--user', 'mara@example.com')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('last owner'),
  });
  expect((await users('remove', '--user', listed[1].userId)).stderr).toBe('Removed Ola (ola@example.com).\n');
  expect((await users('list')).stdout).toMatch(/^mara@example.com +owner +Mara +2\S+Z$/m);
  expect(await users('invite', '--role', 'king')).toMatchObject({ code: 1 });
  expect(await users('crown')).toMatchObject({ code: 2 });

  const organizations = (...args: string[]) => finish(['organizations', ...args]).finally(() => running.pop());
  const created = await organizations('create', 'Second');
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^org_\w+\n$/), stderr: '' });
  const second = created.stdout.trim();
  expect(JSON.parse((await organizations('list', '--json')).stdout)).toEqual([
    { organizationId: expect.stringMatching(/^org_/), name: 'Acme' },
    { organizationId: second, name: 'Second' },
  ]);
  expect(await organizations('create', '')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The name must'),
  });
  expect(await users('list')).toMatchObject({ code: 1, stderr: expect.stringContaining('--organization') });
  const first = (await users('setup-link', '--organization', second)).stdout;
  expect(await accept(first, { name: 'Nia', email: 'nia@example.com', password, organizationName: 'Second' })).toBe(
    200,
  );
  service.child.kill('SIGINT');
  expect(await service.ended).toBe(0);
});

test('a second Ctrl-C stops the service at once, and the next start has all data', async () => {
  const { apiKey, ...service } = await startPrepared();
  const client = new Signalbox({ apiKey, baseUrl: service.url });
  // A turn that takes minutes: stopping waits for it for a few seconds.
  const { agentId } = await client.agents.create({ name: 'slow', model: talker(100, 10_000) });
  await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  service.child.kill('SIGINT');
  await service.printed('Stopping');
  // npm forwards the Ctrl-C of a terminal, which does not count as a second one. The second one is therefore repeated until it counts.
  const again = setInterval(() => service.child.kill('SIGINT'), 50);
  expect(await service.ended).toBe(130);
  clearInterval(again);
  const next = await start();
  expect((await new Signalbox({ apiKey, baseUrl: next.url }).agents.get(agentId)).agentId).toBe(agentId);
});

test('after kill -9 in the middle of a turn, the next start completes it, and a resumed stream misses nothing', async () => {
  const { apiKey, ...first } = await startPrepared();
  const client = new Signalbox({ apiKey, baseUrl: first.url, maxRetries: 20 });
  const { agentId } = await client.agents.create({ name: 'talker', model: talker(40, 25) });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    input: 'go',
    closeOnIdle: true,
  });
  const seen: Chunk[] = [];
  let killed: Promise<unknown> | undefined;
  // One stream across the crash: the client resumes it at its last cursor automatically.
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    seen.push(...chunks);
    if (killed || seen.filter(({ type }) => type === 'message.chunk').length < 5) continue;
    first.child.kill('SIGKILL');
    killed = first.ended.then(() => start({}, new URL(first.url).port));
  }
  await killed;
  const stored: Chunk[] = [];
  for await (const { chunks } of client.sessions.chunks(sessionId)) stored.push(...chunks);
  expect(seen).toEqual(stored);
  expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1));
  expect(stored.at(-1)).toMatchObject({ type: 'session.status', status: 'completed' });
  const reset = stored.find((chunk) => chunk.type === 'message.reset');
  const text = stored.filter((chunk) => chunk.type === 'message.chunk' && chunk.seq > (reset?.seq ?? 0));
  expect(text.map((chunk) => chunk.type === 'message.chunk' && chunk.delta).join('')).toBe(words(40));
});

test('the log is printed while the service starts, which an upgrade can make long', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as { port: number };
  const asked = once(silent, 'connection');
  const service = run(['start', '--port', '0'], {
    DATABASE_URL: `postgres://signalbox@127.0.0.1:${port}/signalbox`,
    SIGNALBOX_COFFEE: 'black',
  });
  const [connection] = await asked;
  let isGivenUp = false;
  connection.resume().on('close', () => {
    isGivenUp = true;
  });
  await service.printed('"variable":"SIGNALBOX_COFFEE"');
  expect(isGivenUp).toBe(false);
  connection.destroy();
  silent.close();
  expect(await service.ended).toBe(1);
});

test('a port in use gives one line that says what to do, before anything is created', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const { code, stderr } = await finish(['start', '--port', String(port)]);
  server.close();
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`^signalbox: Cannot listen on 127.0.0.1:${port}: the port is in use\\. .*--port.*\\n$`),
  );
  await expect(fs.stat(dataDir)).rejects.toThrow('ENOENT');
});

test('a data directory in use gives one line, and the service that uses it keeps running', async () => {
  const service = await startPrepared();
  const { code, stderr } = await finish(['start', '--port', '0']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^signalbox: .* is in use by another running Signalbox\. .*\n$/);
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
});

test('a service whose log is not read any more says so on standard error, and continues', async () => {
  const service = await startPrepared();
  service.child.stdout!.destroy();
  // Each is a line of the log.
  const ask = async () => (await fetch(`${service.url}/api/v1/me`)).status;
  await expect
    .poll(async () => {
      await ask();
      return service.output.stderr;
    })
    .toContain('Standard output was closed: the service continues');
  expect(await ask()).toBe(401);
});

test.runIf(process.platform === 'linux')(
  'with a limit of 256 open files a start says how many connections the node accepts, as does the doctor',
  async () => {
    execFileSync('cp', ['-a', join(prepared.base, 'data'), dataDir]);
    const limited: Program = ['bash', '-c', 'ulimit -n 256 && exec "$0" "$@"', ...node];
    const service = run(['start', '--port', '0'], {}, limited);
    await service.printed('Create key');
    const warning = service.output.stdout.split('\n').find((line) => line.includes('limit of open files'))!;
    expect(JSON.parse(warning)).toMatchObject({ level: 'warn', openFiles: 256, accepted: 192, maxConnections: 20_000 });
    const doctor = run(['doctor', '--json'], {}, limited);
    await doctor.ended;
    const found = doctor.output.stdout.split('\n').find((line) => line.includes('"open_files"'))!;
    expect(JSON.parse(found)).toMatchObject({ status: 'warning', message: expect.stringContaining('accepts 192') });
  },
);

test('an unreachable database gives one line without its password', async () => {
  const { code, stderr } = await finish(['start', '--port', '0'], {
    DATABASE_URL: 'postgres://signalbox:hunter2hunter2@127.0.0.1:1/signalbox',
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^signalbox: The database at 127\.0\.0\.1:1\/signalbox does not respond \(ECONNREFUSED\)\. .*\n$/,
  );
});

test('wrong options give a line for each problem, and nothing is created', async () => {
  const { code, stderr } = await finish(['start', '--port', 'http'], {
    SIGNALBOX_ROLES: 'all',
    SIGNALBOX_MASTER_KEY: 'short',
  });
  expect(code).toBe(2);
  expect(stderr.trim().split('\n')).toHaveLength(3);
  expect(stderr).not.toContain('short');
  for (const args of [['start', '--prot', '1'], ['start', 'now'], ['strat'], ['keys', 'make']]) {
    const wrong = await runCli(args, { env: { SIGNALBOX_DATA_DIR: dataDir } });
    expect(wrong.code, args.join(' ')).toBe(2);
    expect(wrong.stderr).toMatch(/^signalbox: .*See: signalbox .*\n$/);
  }
  await expect(fs.stat(dataDir)).rejects.toThrow('ENOENT');
});

test('help and version go to stdout', async () => {
  const whole = await finish(['--help']);
  expect(whole).toMatchObject({ code: 0, stderr: '' });
  expect((await runCli(['--help'])).stdout).toBe(whole.stdout);
  for (const args of [
    ['start', '--help'],
    ['keys', 'create', '--help'],
    ['keys', '--help'],
    ['users', '--help'],
    ['--version'],
  ]) {
    expect(await runCli(args)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/./) });
  }
});
