// A database that is suspended, becomes read-only, and fails over to its standby, under a service that is never restarted.
import { channel } from 'node:diagnostics_channel';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import {
  isPostgresAlive,
  type PostgresProcess,
  serverPidOf,
  spawnPostgres,
} from '../../../embedded-postgres/test/support/postgres-process.ts';
import { createDb } from '../../src/db/db.ts';
import { freePort } from '../support/free-port.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { copyAsStandby } from '../support/standby.ts';

let base: string;
let primary: { dataDir: string; process: PostgresProcess; url: string };
let standby: { dataDir: string; process: PostgresProcess; url: string };
let service: TestService;

/** By TCP, because the standby connects to it. */
function atPort(url: string, port: number): string {
  const at = new URL(url);
  at.search = '';
  at.hostname = '127.0.0.1';
  at.port = String(port);
  return at.href;
}

/** The server and each of its processes. */
async function processesOf(dataDir: string): Promise<number[]> {
  const server = await serverPidOf(dataDir);
  const found = [server];
  for (const name of await fs.readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await fs.readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    if (Number(/\) \S (\d+)/.exec(stat)?.[1]) === server) found.push(Number(name));
  }
  return found;
}

/** The server is the first: it may then find that another one has ended. */
function resume(pids: readonly number[]): void {
  for (const pid of pids.filter(isPostgresAlive)) process.kill(pid, 'SIGCONT');
}

async function crash({ dataDir, process: started }: typeof primary): Promise<void> {
  started.child.kill('SIGKILL');
  const pid = await serverPidOf(dataDir);
  process.kill(pid, 'SIGQUIT');
  await vi.waitUntil(() => !isPostgresAlive(pid), { timeout: 30_000 });
}

beforeAll(async () => {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  const [port, otherPort] = [await freePort(), await freePort()];
  const started = spawnPostgres(join(base, 'primary'), { port });
  primary = { dataDir: join(base, 'primary'), process: started, url: atPort((await started.next()).url!, port) };
  await copyAsStandby(primary, join(base, 'standby'));
  standby = {
    dataDir: join(base, 'standby'),
    process: spawnPostgres(join(base, 'standby'), { port: otherPort }),
    url: atPort(primary.url, otherPort),
  };
  const isFollowed = async () => (await ask(primary.url, 'select 1 from pg_stat_replication')).length > 0;
  await vi.waitUntil(isFollowed, { timeout: 30_000 });
  const { host, username, password, pathname } = new URL(primary.url);
  // The standby first: the service must skip it.
  const hosts = `127.0.0.1:${otherPort},${host}`;
  const url = `postgres://${username}:${password}@${hosts}${pathname}?target_session_attrs=read-write`;
  service = await startTestService({ database: { url, drop: async () => {} }, config: { databaseUrl: url } });
}, 180_000);

afterAll(async () => {
  await service?.stop();
  for (const one of [primary, standby]) if (one) await crash(one).catch(() => {});
  await fs.rm(base, { recursive: true, force: true });
}, 120_000);

let count = 0;

/** A write. */
async function post(): Promise<number> {
  count += 1;
  const body = JSON.stringify({ name: `key ${count}`, permission: 'read' });
  const answer = await service.fetch('/api/v1/api_keys', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': `trouble-${count}` },
    body,
  });
  await answer.arrayBuffer();
  return answer.status;
}

const ready = async () => (await fetch(`${service.url}/readyz`)).status;

/** Writes until one succeeds; every other gets a 503, whatever happens meanwhile. */
async function untilWritten(during: () => Promise<unknown>): Promise<void> {
  const others = new Set<number>();
  const trouble = during();
  await expect
    .poll(
      async () => {
        const status = await post();
        if (status !== 201) others.add(status);
        return status;
      },
      { timeout: 50_000, interval: 20 },
    )
    .toBe(201);
  await trouble;
  expect([...others].filter((status) => status !== 503)).toEqual([]);
}

test('a node that is gone without a word loses its connections on the server after half a minute', async () => {
  const db = createDb({ url: primary.url });
  // The values of the socket itself, which the operating system returns.
  const [row] = await db.query(sql`
    select current_setting('tcp_keepalives_idle')::int + current_setting('tcp_keepalives_interval')::int
      * current_setting('tcp_keepalives_count')::int as "idleSeconds",
      current_setting('tcp_user_timeout')::int as "unacknowledgedMs"`);
  expect(row).toEqual({ idleSeconds: 30, unacknowledgedMs: 30_000 });
  await db.close();
});

test('while the database is suspended requests get a 503, and it is used again when it resumes', async () => {
  expect([await post(), await ready()]).toEqual([201, 200]);
  const stopped = await processesOf(primary.dataDir);
  for (const pid of stopped) process.kill(pid, 'SIGSTOP');
  try {
    expect(await Promise.all([post(), post(), post()])).toEqual([503, 503, 503]);
    await expect.poll(ready).toBe(503);
  } finally {
    resume(stopped);
  }
  await untilWritten(async () => {});
  await expect.poll(ready).toBe(200);
});

test('a request of a known caller waits once for a database that hangs, not once more to look the caller up', async () => {
  const { agentId } = await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' });
  const input = { agentId, environment: 'production' };
  await service.client.sessions.open(input);
  const lookUps: string[] = [];
  const onStatement = (text: unknown) => {
    const statement = String(text).replaceAll(/\s+/g, ' ').trim();
    if (/^select (?!1 ).* from api_keys k/.test(statement)) lookUps.push(statement);
  };
  const stopped = await processesOf(primary.dataDir);
  for (const pid of stopped) process.kill(pid, 'SIGSTOP');
  channel('signalbox.statement').subscribe(onStatement);
  try {
    const answer = await service.fetch('/api/v1/sessions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    });
    expect([answer.status, lookUps]).toEqual([503, []]);
  } finally {
    channel('signalbox.statement').unsubscribe(onStatement);
    resume(stopped);
  }
  await untilWritten(async () => {});
});

test('while the database is read-only requests get a 503, and it is used again once it accepts writes', async () => {
  const set = async (value: string) => {
    await ask(primary.url, `alter system set default_transaction_read_only = ${value}`);
    await ask(primary.url, 'select pg_reload_conf()');
  };
  await set('on');
  await expect.poll(ready).toBe(503);
  expect(await post()).toBe(503);
  expect(await (await fetch(`${service.url}/metrics`)).text()).toMatch(/^signalbox_database_up 0$/m);
  await set('off');
  await untilWritten(async () => {});
  await expect.poll(ready).toBe(200);
});

test('when the primary is gone and its standby is promoted, the standby is used, by a URL that names both', async () => {
  await crash(primary);
  expect(await post()).toBe(503);
  await expect.poll(ready).toBe(503);
  await untilWritten(() => ask(standby.url, 'select pg_promote()'));
  await expect.poll(ready).toBe(200);
});
