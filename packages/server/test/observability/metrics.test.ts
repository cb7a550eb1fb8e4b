// What /metrics reports, and to whom. Each metric changes when its event happens.
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import type { Db } from '../../src/db/db.ts';
import { planForLookups } from '../../src/db/plan-for-lookups.ts';
import { countOpenSessions } from '../../src/events/open-sessions.ts';
import { addMonitoring } from '../../src/http/monitoring.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createNodeLease } from '../../src/node/claims/node-lease.ts';
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts';
import { createScrape } from '../../src/observe/scrape.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { createCountingRound } from '../../src/overview/counting-round.ts';
import { createWake } from '../../src/wake/wake.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { costOfBatch } from '../support/plans.ts';
import { createTestPlatform } from '../support/platform.ts';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';
import { answering, createWorld, httpTool, never } from '../support/session-world.ts';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (let end = endings.pop(); end; end = endings.pop()) await end();
});

interface Observed {
  service: TestService;
  clock: ManualClock;
  receiver: Receiver;
}

async function start(config: Partial<Config> = {}): Promise<Observed> {
  const clock = createManualClock();
  const service = await startTestService({ clock, config });
  endings.push(() => clock.passWhile(service.stop()));
  const receiver = await createReceiver();
  endings.push(() => receiver.close());
  return { service, clock, receiver };
}

/** Samples by their full name, `name{label="value"}`. */
type Samples = Map<string, number>;

function samplesOf(text: string): Samples {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

async function scrape({ url }: { url: string }): Promise<Samples> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return samplesOf(await response.text());
}

const scripted = (script: object[]) =>
  ({ provider: 'scripted', model: 'stated-model', settings: { script } }) as unknown as 'scripted/x';

const hook = (name: string, receiver: Receiver) =>
  httpTool(name, { request: { method: 'POST', url: receiver.url, body: { chunks: [] } } });

/** Opens a session and advances the clock until its turn is over. */
async function runTurn({ service, clock }: Observed, agent: object): Promise<string> {
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'stated-name', ...agent } as never);
  const opened = await client.sessions.open({ agentId, environment: 'production', input: 'stated-input' });
  await clock.passUntil(async () => /idle|failed/.test((await client.sessions.get(opened.sessionId)).status));
  return opened.sessionId;
}

test('each stage of a turn is counted where it happens', async () => {
  const observed = await start();
  const { service, clock, receiver } = observed;
  await service.client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
  const before = await scrape(service);
  await runTurn(observed, {
    model: scripted([
      { text: 'hello there', tokenDelayMs: 100, toolCalls: [{ name: 'look' }, { name: 'away' }] },
      { text: 'bye' },
    ]),
    tools: [hook('look', receiver), httpTool('away', { request: { method: 'GET', url: 'http://127.0.0.1:1/' } })],
  });
  const delivered = async () => (await scrape(service)).get('signalbox_webhook_delivery_duration_seconds_count') ?? 0;
  await clock.passUntil(async () => (await delivered()) > 0);
  await service.fetch('/api/v1/me', { headers: { authorization: 'Bearer nonsense' } });
  // Until earlier results of the database are no longer cached.
  const idle = async () => (await scrape(service)).get('signalbox_sessions{status="idle"}');
  await clock.passUntil(async () => (await idle()) === 1);

  const after = await scrape(service);
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  expect(grown('signalbox_http_requests_total{route="/api/v1/agents",method="POST",status="201"}')).toBe(1);
  expect(grown('signalbox_http_request_duration_seconds_count{route="/api/v1/agents",method="POST"}')).toBe(1);
  expect(grown('signalbox_authentications_total{code="malformed_token"}')).toBe(1);
  expect(grown('signalbox_authentications_total{code="ok"}')).toBeGreaterThan(2);
  for (const path of ['text', 'transition']) {
    expect(grown(`signalbox_append_duration_seconds_count{path="${path}"}`)).toBeGreaterThan(0);
    expect(grown(`signalbox_append_chunks_total{path="${path}"}`)).toBeGreaterThan(0);
  }
  expect(grown('signalbox_append_batch_sessions_count')).toBeGreaterThan(0);
  expect(grown('signalbox_wakeups_total{topic="journal",origin="here"}')).toBeGreaterThan(0);
  expect(grown('signalbox_turns_total{outcome="endTurn"}')).toBe(1);
  expect(grown('signalbox_turn_duration_seconds_count')).toBe(1);
  expect(grown('signalbox_model_calls_total{provider="scripted",outcome="succeeded"}')).toBe(2);
  expect(grown('signalbox_model_call_duration_seconds_count{provider="scripted"}')).toBe(2);
  expect(grown('signalbox_tool_calls_total{type="http",outcome="succeeded"}')).toBe(1);
  expect(grown('signalbox_tool_calls_total{type="http",outcome="failed"}')).toBe(1);
  expect(grown('signalbox_tool_call_duration_seconds_count{type="http"}')).toBe(2);
  expect(grown('signalbox_webhook_attempts_total{outcome="accepted"}')).toBeGreaterThan(0);
  expect(grown('signalbox_webhook_attempt_duration_seconds_count')).toBeGreaterThan(0);
  expect(after.get('signalbox_database_up')).toBe(1);
  expect(after.get('signalbox_database_connections')).toBeGreaterThan(0);
  expect(after.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
  expect(grown('process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(after.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
});

test('failures are counted by their class', async () => {
  const observed = await start();
  const { service, receiver } = observed;
  const { webhookSubscriptions } = service.client;
  await webhookSubscriptions.create({ environment: 'staging', url: receiver.url });
  for (const answer of [500, 302, 401, 'reset'] as const) {
    receiver.respond = () => answer;
    await webhookSubscriptions.test('staging');
  }
  await runTurn(observed, { model: scripted([{ failWith: 'timeout' }]), limits: { modelOutageSeconds: 0 } });
  await service.fetch('/api/v1/nowhere', { method: 'PATCH' });

  const samples = await scrape(service);
  for (const outcome of ['status', 'redirect', 'refused', 'reset']) {
    expect(samples.get(`signalbox_webhook_attempts_total{outcome="${outcome}"}`), outcome).toBe(1);
  }
  expect(samples.get('signalbox_model_calls_total{provider="scripted",outcome="model_timeout"}')).toBe(5);
  expect(samples.get('signalbox_turns_total{outcome="error"}')).toBe(1);
  expect(samples.get('signalbox_http_requests_total{route="none",method="other",status="404"}')).toBe(1);
});

test('sessions that wait for their model, and for a limit of their environment, are counted apart', async () => {
  const observed = await start();
  const { service, clock } = observed;
  const { agentId } = await service.client.agents.create({ name: 'A', model: scripted([{ failWith: 'unavailable' }]) });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const status = async () => (await service.client.sessions.get(sessionId)).status;
  await clock.passUntil(async () => (await status()) === 'waiting');
  await clock.advance(5_000);
  await service.client.environments.update('production', { modelLimits: [{ model: '*', requestsPerMinute: 1 }] });
  const limited = await service.client.agents.create({ name: 'A', model: 'scripted/limited' });
  for (let n = 0; n < 3; n++)
    await service.client.sessions.open({ agentId: limited.agentId, environment: 'production', input: 'go' });
  const waiting = async () =>
    (await service.client.environments.list()).data.flatMap((one) => one.modelLimits)[0]?.waiting;
  await clock.passUntil(async () => (await waiting()) === 2);
  await clock.advance(5_000);
  const samples = await scrape(service);
  expect(samples.get('signalbox_sessions_waiting_for_model')).toBe(1);
  expect(samples.get('signalbox_sessions_waiting_for_limit')).toBe(2);
});

test('a stream counts as a reader while it is open, and not as a slow request', async () => {
  const { service } = await start();
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  const labels = 'route="/api/v1/sessions/{sessionId}/stream",method="GET"';
  const requests = async () => (await scrape(service)).get(`signalbox_http_requests_total{${labels},status="200"}`);
  const gone = new AbortController();
  const path = `/api/v1/sessions/${sessionId}/stream`;
  const stream = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${service.adminKey}` },
    signal: gone.signal,
  });
  const readers = async () => (await scrape(service)).get('signalbox_live_readers');
  await expect.poll(readers).toBe(1);
  gone.abort();
  await stream.body?.cancel().catch(() => {});
  await expect.poll(readers).toBe(0);
  await expect.poll(requests).toBe(1);

  // A stream that ends by itself counts once as well.
  const ending = service.fetch(path);
  await expect.poll(readers).toBe(1);
  await client.sessions.close(sessionId);
  await (await ending).text();
  await expect.poll(requests).toBe(2);
  await client.me();
  expect(await requests()).toBe(2);
  expect((await scrape(service)).has(`signalbox_http_request_duration_seconds_count{${labels}}`)).toBe(false);
});

test('no label and no line contains an organization, a session, user text, a host or a secret', async () => {
  const observed = await start();
  const { service, receiver } = observed;
  const { client } = service;
  const subscription = await client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
  const sessionId = await runTurn(observed, {
    model: scripted([{ toolCalls: [{ name: 'stated-tool' }] }, { text: 'stated-answer' }]),
    tools: [hook('stated-tool', receiver)],
  });
  await service.fetch('/api/v1/stated-path?stated-query=1');
  await service.fetch(`/api/v1/sessions/${sessionId}`);
  const { keyId } = await client.keys.create({ name: 'stated-key', permission: 'read' });
  const text = await (await fetch(`${service.url}/metrics`)).text();
  for (const word of [
    /stated-/,
    /(org|ses|agt|key|whs|whd|op|req|turn)_[0-9a-z]{20,}/,
    /[0-9a-f]{8}-[0-9a-f]{4}-/,
    /127\.0\.0\.1/,
    new RegExp(keyId),
    new RegExp(service.adminKey.slice(-20)),
    new RegExp(subscription.signingSecret!.slice(-20).replaceAll('+', '\\+')),
  ]) {
    expect(text).not.toMatch(word);
  }
});

test('metrics are only for this machine, by the address of the socket, and never for a forwarded request', async () => {
  const { platform, close } = await createTestPlatform();
  endings.push(close);
  const read = async (token: string | undefined, remoteAddress: string, headers: Record<string, string> = {}) => {
    const app = Fastify();
    app.setErrorHandler((error: Error & { status?: number; code?: string }, _, reply) =>
      reply.code(error.status ?? 500).send(error.code),
    );
    addMonitoring(app, platform, {
      scrape: { text: async () => 'samples', stop: async () => {} },
      token,
      isDraining: () => false,
    });
    const { statusCode, body } = await app.inject({ url: '/metrics', remoteAddress, headers });
    expect(body).not.toContain(TOKEN);
    return `${statusCode} ${body}`;
  };
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) {
    expect(await read(undefined, address), address).toBe('200 samples');
  }
  for (const address of ['10.0.0.1', '203.0.113.9', '::ffff:10.0.0.1', '2001:db8::1', 'fe80::1']) {
    expect(await read(undefined, address), address).toBe('403 ip_not_allowed');
    expect(await read(undefined, address, { authorization: `Bearer ${TOKEN}` })).toBe('403 ip_not_allowed');
    expect(await read(TOKEN, address)).toBe('401 missing_token');
    expect(await read(TOKEN, address, { authorization: `Bearer ${TOKEN.slice(1)}` })).toBe('401 invalid_token');
    expect(await read(TOKEN, address, { authorization: `Bearer ${TOKEN}` })).toBe('200 samples');
    // A remote client can send any header.
    expect(await read(undefined, address, { 'x-forwarded-for': '127.0.0.1' })).toBe('403 ip_not_allowed');
  }
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host']) {
    expect(await read(undefined, '127.0.0.1', { [name]: '127.0.0.1' }), name).toBe('403 ip_not_allowed');
  }
  // A page in a browser on this machine, whose author pointed a host name of theirs here.
  for (const host of ['evil.example', 'evil.example:4500', '127.0.0.1.evil.example', 'localhost.']) {
    expect(await read(undefined, '127.0.0.1', { host }), host).toBe('403 ip_not_allowed');
  }
  for (const host of ['localhost', 'localhost:4500', '127.0.0.1:4500', '[::1]:4500', 'build-host:4500']) {
    expect(await read(undefined, '127.0.0.1', { host }), host).toBe('200 samples');
  }
});

const TOKEN = 'metrics-token-0123456789abcdef';

test('the token gives access to /metrics, and is in no response and no log line', async () => {
  watchSecret(TOKEN);
  const { service } = await start({ metricsToken: TOKEN, trustProxy: ['127.0.0.1/32'] });
  const read = (headers: Record<string, string>) => fetch(`${service.url}/metrics`, { headers });
  const refused = await read({ 'x-forwarded-for': '127.0.0.1' });
  expect(refused.status).toBe(401);
  expect(await refused.json()).toMatchObject({ code: 'missing_token', status: 401 });
  const opened = await read({ 'x-forwarded-for': '203.0.113.9', authorization: `Bearer ${TOKEN}` });
  expect(opened.status).toBe(200);
  expect(await opened.text()).not.toContain(TOKEN);
});

test('a node without the API serves its metrics on a separate port', async () => {
  const first = await start();
  const { service } = first;
  const node = await startTestService({
    clock: first.clock,
    database: service.database,
    config: { roles: new Set(['delivery']), metricsPort: 0 },
  });
  endings.push(() => first.clock.passWhile(node.stop()));
  const { port } = node.logLines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'serving metrics') as {
    port: number;
  };
  const url = `http://127.0.0.1:${port}`;
  expect((await scrape({ url })).get('signalbox_database_up')).toBe(1);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(await (await fetch(`${url}/api/v1/me`)).json()).toMatchObject({ code: 'not_found' });
});

test('waiting work in the database is counted across all organizations, with how long it has waited', async () => {
  const clock = createManualClock();
  const world = await createWorld({ clock });
  endings.push(() => world.close());
  const { platform, organizationId } = world;
  const agentId = await world.agent();
  await platform.db.execute(sql`
    insert into webhook_subscriptions (organization_id, environment, webhook_subscription_id, url, chunk_types, status,
      sealed_secret, secret_version, created_at, updated_at)
    values (${organizationId}, 'production', ${newUuid()}, 'https://example.com/', '{}', 'paused', '', 1, now(), now())`);
  await world.open(agentId);
  await world.open(agentId);
  await world.open(agentId, { input: undefined });
  await clock.advance(30_000);
  const observed = createScrape(platform, createCountingRound(platform));
  endings.push(() => observed.stop());
  const samples = samplesOf(await observed.text());
  expect(samples.get('signalbox_sessions{status="running"}')).toBe(2);
  expect(samples.get('signalbox_sessions{status="idle"}')).toBe(1);
  expect(samples.get('signalbox_sessions{status="waiting"}')).toBe(0);
  expect(samples.get('signalbox_sessions_runnable')).toBe(2);
  expect(samples.get('signalbox_sessions_runnable_oldest_seconds')).toBe(30);
  expect(samples.get('signalbox_webhook_backlog_sessions{subscription="paused"}')).toBe(2);
  expect(samples.get('signalbox_webhook_backlog_sessions{subscription="enabled"}')).toBe(0);
  expect(samples.get('signalbox_events_pending')).toBeGreaterThan(2);
  const ages = (scope: string, id: string) =>
    samples.get(`signalbox_database_freeze_age{scope="${scope}",id="${id}"}`)!;
  // The tables are younger than the catalog, which the cluster was created with.
  expect(ages('tables', 'transaction')).toBeGreaterThan(0);
  expect(ages('database', 'transaction')).toBeGreaterThanOrEqual(ages('tables', 'transaction'));
  expect(ages('database', 'multixact')).toBeGreaterThanOrEqual(ages('tables', 'multixact'));
  expect(samples.get('signalbox_database_freeze_max_age{id="transaction"}')).toBe(200_000_000);
  expect(samples.get('signalbox_database_freeze_max_age{id="multixact"}')).toBe(400_000_000);
  expect(samples.get('signalbox_events_pending_oldest_seconds')).toBe(30);
});

/** A scrape whose queries go through `batch`. */
async function scrapeBy(batch: (really: () => Promise<unknown>) => Promise<unknown>) {
  const clock = createManualClock();
  const { platform, close } = await createTestPlatform({ clock });
  endings.push(close);
  const db = { ...platform.db, batch: (statements) => batch(() => platform.db.batch(statements)) } as Db;
  const observed = createScrape({ ...platform, db }, createCountingRound(platform));
  endings.push(() => observed.stop());
  return { clock, text: async () => samplesOf(await observed.text()) };
}

test('sessions are counted in rounds, a page of organizations at a time, by the indexes', async () => {
  const { platform, organizationId, close } = await createTestPlatform();
  endings.push(close);
  const { db } = platform;
  const now = platform.clock.now();
  const organizationIds = [organizationId];
  for (const name of ['B', 'C', 'D', 'E']) {
    organizationIds.push((await db.transaction((tx) => createOrganization(tx, name, now))).organizationId);
  }
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    select organization_id, organization_id, 1, ${now}, ${now} from organizations`);
  const insert = (count: number, at: number, environment: string, status: string, endedAt: Date | null = null) =>
    db.execute(sql`
      insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at,
        updated_at, ended_at, delivery_due, delivery_subscription_id)
      select ${organizationIds[at]}::uuid, gen_random_uuid(), ${organizationIds[at]}::uuid, ${environment}, ${status}, false, '{}',
        ${now}, ${now}, ${endedAt}::timestamptz, true, ${organizationIds[at]}::uuid from generate_series(1, ${count}) n`);
  await insert(3_000, 0, 'production', 'idle');
  await insert(5, 0, 'staging', 'waiting');
  await insert(5, 0, 'staging', 'failed', now);
  await insert(2, 1, 'production', 'running');
  await insert(10, 4, 'production', 'idle');
  for (const id of organizationIds.slice(0, 4)) await countOpenSessions(db, id, now);
  // Its sessions were never counted.
  await db.execute(sql`update event_heads set open_sessions = null where organization_id = ${organizationIds[4]}`);
  await db.execute(sql`
    insert into webhook_subscriptions (organization_id, environment, webhook_subscription_id, url, chunk_types, status,
      sealed_secret, secret_version, created_at, updated_at)
    select organization_id, 'production', organization_id, '', '{}', case name when 'E' then 'paused' else 'enabled' end, '', 1,
      ${now}, ${now} from organizations`);
  await db.execute(sql`vacuum (analyze) sessions`);

  let elapsedMs = 0;
  const statements: Sql[] = [];
  const slow: Db = {
    ...db,
    transaction: (fn) =>
      db.transaction((tx) => {
        elapsedMs += 30;
        return fn({
          ...tx,
          query<Row>(statement: Sql) {
            statements.push(statement);
            return tx.query<Row>(statement);
          },
        });
      }),
  };
  const next = createCountingRound({ db: slow, clock: { elapsedMs: () => elapsedMs } }, { most: 1_000, page: 2 });
  // Two pages fit into the time of a scrape.
  expect(await next()).toBe(undefined);
  const counts = (await next())!;
  expect(Object.fromEntries(counts.sessions)).toEqual({ idle: 3_010, running: 2, waiting: 5 });
  // Up to the most of a subscription.
  expect(Object.fromEntries(counts.backlog)).toEqual({ enabled: 1_002, paused: 10, disabled: 0 });
  expect(statements).toHaveLength(9);
  expect(await next()).toBe(counts);
  expect((await next())!.sessions).toEqual(counts.sessions);
  for (const statement of statements.slice(0, 9)) {
    const [, cost] = await costOfBatch(db, [planForLookups, statement]);
    expect(cost!.wholeTables).not.toContain('sessions');
    expect(cost!.rows, statement.text).toBeLessThan(1_040);
  }
});

test('a page that takes too long does not look like a lost database, and smaller ones follow it', async () => {
  const { platform, close } = await createTestPlatform({ clock: createManualClock() });
  endings.push(close);
  const { db } = platform;
  const limits: unknown[] = [];
  let isSlow = true;
  const slow: Db = {
    ...db,
    transaction: (fn) =>
      db.transaction((tx) => {
        if (isSlow) throw new Error('canceling statement due to statement timeout');
        return fn({
          ...tx,
          query<Row>(statement: Sql) {
            if (statement.sql.includes(' offset ')) limits.push(statement.values.at(-1));
            return tx.query<Row>(statement);
          },
        });
      }),
  };
  const next = createCountingRound({ db: slow, clock: platform.clock }, { page: 100 });
  const observed = createScrape(platform, next);
  endings.push(() => observed.stop());
  const samples = samplesOf(await observed.text());
  expect(samples.get('signalbox_database_up')).toBe(1);
  expect(samples.get('signalbox_events_pending')).toBeTypeOf('number');
  expect([...samples.keys()].filter((name) => /^signalbox_(sessions\{|webhook_backlog)/.test(name))).toEqual([]);
  isSlow = false;
  expect(await next()).toBeDefined();
  expect(await next()).toBeDefined();
  expect(limits).toEqual([24, 99]);
});

test('any number of scrapes query the database once in five seconds', async () => {
  let looks = 0;
  const { clock, text } = await scrapeBy((really) => {
    looks += 1;
    return really();
  });
  await Promise.all([text(), text(), text()]);
  await text();
  expect(looks).toBe(1);
  await clock.advance(4_999);
  await text();
  expect(looks).toBe(1);
  await clock.advance(1);
  await text();
  expect(looks).toBe(2);
});

test('the result of a slow query is cached for ten times its duration', async () => {
  let looks = 0;
  const slow = await scrapeBy(async (really) => {
    looks += 1;
    const rows = await really();
    await slow.clock.advance(1_500);
    return rows;
  });
  await slow.text();
  await slow.clock.advance(14_999);
  await slow.text();
  expect(looks).toBe(1);
  await slow.clock.advance(1);
  await slow.text();
  expect(looks).toBe(2);
});

test('a scrape succeeds while the database fails, and omits unknown values', async () => {
  let isDown = false;
  const { clock, text } = await scrapeBy((really) => (isDown ? Promise.reject(new Error('away')) : really()));
  expect((await text()).get('signalbox_database_up')).toBe(1);
  isDown = true;
  await clock.advance(60_000);
  const samples = await text();
  expect(samples.get('signalbox_database_up')).toBe(0);
  expect(
    [...samples.keys()].filter((name) =>
      /^signalbox_(sessions|events_pending|webhook_backlog|database_freeze)/.test(name),
    ),
  ).toEqual([]);
  expect(samples.has('process_resident_memory_bytes')).toBe(true);
  isDown = false;
  await clock.advance(60_000);
  expect((await text()).get('signalbox_events_pending')).toBeTypeOf('number');
});

test('a scrape waits two seconds for a database that does not respond', async () => {
  const answer = Promise.withResolvers<void>();
  const { clock, text } = await scrapeBy(async (really) => {
    await answer.promise;
    return really();
  });
  const waiting = text();
  await clock.advance(2_000);
  expect((await waiting).get('signalbox_database_up')).toBe(0);
  answer.resolve();
  await expect.poll(async () => (await text()).get('signalbox_database_up')).toBe(1);
});

const sumOf = async (metric: Metrics['leaseLosses']) =>
  (await metric.get()).values.map(({ value }) => value).reduce((sum, value) => sum + value, 0);

test('a session that another node took over counts as lost, one that this node ended does not', async () => {
  const world = await createWorld();
  endings.push(() => world.close());
  const [first, second] = [await world.anotherNode(), await world.anotherNode()];
  const sessionId = await world.open(await world.agent());
  const asked = Promise.withResolvers<void>();
  const slow = await world.work({
    platform: first,
    ask: async function* (_, signal) {
      asked.resolve();
      yield await never(signal);
    },
  });
  await asked.promise;
  await world.expireLease(slow.nodeId);
  await world.work({ platform: second, ask: answering([{ text: 'done' }]) });
  await world.until(sessionId, (chunk) => chunk.type === 'turn.completed');
  await expect.poll(() => sumOf(first.metrics.leaseLosses)).toBe(1);
  expect(await sumOf(second.metrics.leaseLosses)).toBe(0);
});

test('a session that its own node cancels after an expired approval does not count as lost', async () => {
  const clock = createManualClock();
  const world = await createWorld({ clock });
  endings.push(() => world.close());
  const agentId = await world.agent([httpTool('pay', { approval: 'always' })], {
    limits: { approvalTimeoutSeconds: 60, onApprovalTimeout: 'cancel' },
  });
  const sessionId = await world.open(agentId);
  await world.work({ ask: answering([{ calls: [['pay', {}]] }]) });
  await world.until(sessionId, (chunk) => chunk.type === 'approval.requested');
  const isCancelled = world.until(
    sessionId,
    (chunk) => chunk.type === 'session.status' && chunk.status === 'cancelled',
  );
  await clock.advance(61_000);
  await clock.passWhile(isCancelled);
  await expect.poll(() => sumOf(world.platform.metrics.turns as never)).toBe(1);
  expect(await sumOf(world.platform.metrics.leaseLosses)).toBe(0);
});

test('a failed renewal of the lease is counted', async () => {
  const clock = createManualClock();
  const { platform, close } = await createTestPlatform({ clock });
  endings.push(close);
  let isDown = false;
  const query: Db['query'] = (statement) => (isDown ? Promise.reject(new Error('away')) : platform.db.query(statement));
  const lease = createNodeLease({ ...platform, db: { ...platform.db, query } }, { nodeId: newUuid() });
  await lease.start();
  endings.push(() => lease.stop());
  isDown = true;
  await clock.advance(5_000);
  await expect.poll(() => sumOf(platform.metrics.leaseFailures)).toBe(1);
});

test('wake-ups are counted by their origin', async () => {
  const { platform, close } = await createTestPlatform();
  endings.push(close);
  const node = () => {
    const wake = createWake({ ...platform, acrossNodes: true });
    endings.push(() => wake.close());
    const observed = createScrape({ ...platform, metrics: createMetrics(), wake }, createCountingRound(platform));
    endings.push(() => observed.stop());
    const origins = async () =>
      [...samplesOf(await observed.text()).keys()].filter((name) => name.startsWith('signalbox_wakeups_total'));
    return { wake, origins };
  };
  const [here, there] = [node(), node()];
  let isHeard = false;
  const one = { organizationId: newUuid(), environment: 'production', sessionId: newUuid() };
  there.wake.subscribe('journal', (hint) => {
    isHeard ||= hint?.sessionId === one.sessionId;
  });
  // A node that does not listen yet gets no notifications.
  const tell = () => {
    here.wake.publish('journal', one);
    return isHeard;
  };
  await expect.poll(tell).toBe(true);
  expect(await here.origins()).toEqual(['signalbox_wakeups_total{topic="journal",origin="here"}']);
  expect(await there.origins()).toEqual(['signalbox_wakeups_total{topic="journal",origin="elsewhere"}']);
});

test('the documentation lists every metric with its labels, and no other', async () => {
  const page = readFileSync(new URL('../../../../docs/operations/observability.md', import.meta.url), 'utf8');
  // The names of alerts begin with a capital.
  const documented = [...page.matchAll(/^\| `([a-z]\w*)` \| ([^|]*) \| /gm)].map(([, name, labels = '']) => [
    name,
    [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
  ]);
  const { registry, ...metrics } = createMetrics();
  const kept = Object.values(metrics).map((metric) => {
    const { name, labelNames } = metric as unknown as { name: string; labelNames: string[] };
    return [name, labelNames];
  });
  expect(kept.length).toBe(registry.getMetricsAsArray().length);
  expect(documented).toEqual(kept);
});

test('the alerts and the dashboard use metrics and labels that exist, and the dashboard shows every metric', () => {
  const { registry, ...metrics } = createMetrics();
  const all = Object.values(metrics) as unknown as { name: string; labelNames: string[] }[];
  const labels = new Set([...all.flatMap((metric) => metric.labelNames), 'le', 'job', 'instance', 'namespace']);
  const file = (path: string) => readFileSync(new URL(`../../../../deploy/${path}`, import.meta.url), 'utf8');
  const { panels } = JSON.parse(file('grafana/signalbox.json')) as { panels: { targets?: { expr: string }[] }[] };
  const dashboard = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const rules = file('prometheus/rules.yaml')
    .split(/(?=- alert:)/)
    .slice(1);
  const namesIn = (text: string) =>
    [...text.matchAll(/\b(?:signalbox|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name.replace(/_bucket$/, ''));
  for (const text of [...dashboard, ...rules]) {
    expect(namesIn(text).length, text).toBeGreaterThan(0);
    expect(namesIn(text).filter((name) => !registry.getSingleMetric(name))).toEqual([]);
    const grouped = [...text.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names]) => names!.split(/, */));
    const matched = [...text.matchAll(/([a-z_]+)(?:=|=~|!=|!~)"/g)].map(([, name]) => name!);
    expect([...grouped, ...matched].filter((name) => !labels.has(name))).toEqual([]);
  }
  const shown = new Set(dashboard.flatMap(namesIn));
  expect(all.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
});
