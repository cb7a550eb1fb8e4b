// Every list of the API: paging through it one by one returns the same as one read, and its filters exclude what they should.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { PageRequest } from '@signalbox/client';
import sql from 'sql-template-tag';
import { beforeAll, describe, expect, test } from 'vitest';
import { findAgents } from '../../src/agents/find-agents.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let agentId: string;
let sessionIds: string[];
let scheduleId: string;
let destinationId: string;

const environments = ['production', 'staging', 'dev'];

beforeAll(async () => {
  service = await startTestService();
  const { client } = service;
  const receiver = createServer((request, response) => void request.resume().on('end', () => response.end('{}')));
  const url = await listen(receiver);
  await client.environments.create({ name: 'dev' });
  for (const environment of environments) {
    await client.webhookSubscriptions.create({ environment, url });
    await client.environments.secrets.set('dev', `SECRET_${environment.toUpperCase()}`, {
      value: 'not to be seen',
      allowedHosts: ['example.com'],
    });
  }
  await client.keys.create({ name: 'reader', permission: 'read' });
  const tools = ['a', 'b', 'c'].map((name) => ({
    type: 'client' as const,
    name,
    description: name,
    inputSchema: { type: 'object' },
    effectful: true,
  }));
  const script = [{ toolCalls: tools.map(({ name }) => ({ name, input: {} })) }, { text: 'done' }];
  const model = { provider: 'scripted' as const, model: 'test', settings: { script } };
  ({ agentId } = await client.agents.create({ name: 'one', model, tools }));
  await client.agents.update(agentId, { name: 'two' });
  await client.agents.update(agentId, { name: 'three' });
  for (const name of ['x', 'y']) await client.agents.create({ name, model: 'scripted/test' });
  sessionIds = [];
  // Two in one environment, so that it has at least two deliveries.
  for (const environment of [...environments, 'production']) {
    const { sessionId } = await client.sessions.open({
      agentId,
      environment,
      input: 'go',
      agentVersion: 1,
      metadata: { place: environment, kind: 'list' },
    });
    sessionIds.push(sessionId);
    await untilStatus(sessionId, 'waiting');
  }
  const schedule = { agentId, environment: 'dev', cron: '0 0 1 1 *', status: 'paused' as const };
  ({ scheduleId } = await client.schedules.create(schedule));
  await client.schedules.create(schedule);
  await service.db.execute(sql`
    insert into schedule_runs (organization_id, schedule_id, scheduled_at, status, created_at)
    select organization_id, schedule_id, now() - n * interval '1 hour', 'missed', now()
    from schedules cross join generate_series(1, 3) as n`);
  // The lists do not change from here on.
  while ((await service.db.execute(sql`select 1 from sessions where delivery_due`)) > 0);
  while (
    (await service.db.execute(sql`select 1 from webhook_subscriptions where confirmed_secret_version is null`)) > 0
  );
  // Previews and working times are added in the background, from events that have their place in the log.
  while (
    (await service.db.execute(sql`
      select 1 from event_heads h left join session_search_progress p using (organization_id)
      where p.sequence is distinct from h.sequence or p.added_from is not null
        or exists (select 1 from events_pending e where e.organization_id = h.organization_id)`)) > 0
  );
  for (let n = 0; n < 2; n += 1) {
    const { destination } = await client.destinations.create({
      ...{ name: `D${n}`, type: 'webhook', eventTypes: ['budget.*'], url },
    });
    ({ destinationId } = await client.destinations.update(destination.destinationId, { status: 'paused' }));
  }
  await service.db.execute(sql`
    insert into destination_deliveries (organization_id, destination_id, delivery_id, lane, sequences, last_sequence, status,
      due_at, created_at)
    select organization_id, destination_id, gen_random_uuid(), 'budget:b', array[n], n, 'pending', now(), now()
    from destinations cross join generate_series(1, 3) as n`);
  // The last success is recorded up to a second later, except if the subscription has changed since.
  for (const environment of environments) await client.webhookSubscriptions.update(environment, { status: 'paused' });
  return async () => {
    await service.stop();
    receiver.close();
  };
});

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

async function untilStatus(sessionId: string, wanted: string): Promise<void> {
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === wanted)) return;
  }
}

type List = (query: { limit?: number; cursor?: string }) => PageRequest<object>;
const lists: Record<string, (client: TestService['client']) => List> = {
  keys: (client) => (query) => client.keys.list(query),
  agents: (client) => (query) => client.agents.list(query),
  'versions of an agent': (client) => (query) => client.agents.versions(agentId, query),
  environments: (client) => (query) => client.environments.list(query),
  secrets: (client) => (query) => client.environments.secrets.list('dev', query),
  sessions: (client) => (query) => client.sessions.list(query),
  'messages of a session': (client) => (query) => client.sessions.messages(sessionIds[0]!, query),
  'chunks of a session': (client) => (query) => client.sessions.chunks(sessionIds[0]!, query),
  approvals: (client) => (query) => client.approvals.list(query),
  'approvals, newest first': (client) => (query) => client.approvals.list({ ...query, order: 'desc' }),
  'webhook subscriptions': (client) => (query) => client.webhookSubscriptions.list(query),
  deliveries: (client) => (query) => client.webhookSubscriptions.deliveries.list('production', query),
  schedules: (client) => (query) => client.schedules.list(query),
  'runs of a schedule': (client) => (query) => client.schedules.runs(scheduleId, query),
  destinations: (client) => (query) => client.destinations.list(query),
  'deliveries to a destination': (client) => (query) => client.destinations.deliveries(destinationId, query),
  'the event log': (client) => (query) => client.events.list(query),
  'the event log, oldest first': (client) => (query) => client.events.list({ ...query, order: 'asc' }),
};

test.each(Object.keys(lists))('%s: all pages together equal one long page', async (name) => {
  const list = lists[name]!(service.client);
  const whole = await list({ limit: 100 });
  expect(whole.hasMore).toBe(false);
  const walked: object[] = [];
  for await (const item of list({ limit: 1 })) walked.push(item);
  if (name === 'chunks of a session') {
    const chunksIn = (envelopes: readonly object[]) =>
      envelopes.flatMap((envelope) => (envelope as { chunks: object[] }).chunks);
    expect(chunksIn(walked)).toEqual(chunksIn(whole.data));
  } else {
    expect(walked).toEqual(whole.data);
  }
  expect(walked.length).toBeGreaterThan(1);
});

test.each(Object.keys(lists).filter((name) => name !== 'chunks of a session'))(
  '%s: a cursor that is well formed but names no row is refused as a cursor',
  async (name) => {
    const list = lists[name]!(service.client);
    const { nextCursor } = await list({ limit: 1 });
    const [version, of, key] = JSON.parse(Buffer.from(nextCursor, 'base64url').toString()) as string[];
    const cursorOf = (forged: unknown) => Buffer.from(JSON.stringify([version, of, forged])).toString('base64url');
    expect(cursorOf(key)).toBe(nextCursor);
    const forgeries = [
      '',
      ' ',
      'x',
      '1.5',
      '-1',
      '1e3',
      'NaN',
      `${key} `,
      `'; drop table events`,
      '\u0000',
      5,
      null,
      [key],
    ];
    const tooLarge = ['9'.repeat(30), '99999999999:1', '1:99999999999', '+275760-01-01T00:00:00.000Z', '2026-13-01'];
    for (const forged of [...forgeries, ...tooLarge]) {
      const refusal = list({ cursor: cursorOf(forged) });
      await expect(refusal, String(forged)).rejects.toMatchObject({ status: 400, code: 'invalid_cursor' });
    }
  },
);

test('a cursor beyond every possible journal is refused as a cursor', async () => {
  for (const cursor of ['turn_1', 'turn_99999999999999999999:seq_1', 'turn_1:seq_99999999999999999999', 'x']) {
    const refusal = service.client.sessions.chunks(sessionIds[0]!, { cursor });
    await expect(refusal, cursor).rejects.toMatchObject({ status: 400, code: 'invalid_cursor' });
  }
});

describe('sessions', () => {
  test('are found by status, agent, environment and metadata, alone and together', async () => {
    const { client } = service;
    const found = async (query: Parameters<typeof client.sessions.list>[0]) =>
      (await client.sessions.list(query)).data.map(({ sessionId }) => sessionId).toReversed();
    expect(await found({ status: 'waiting' })).toEqual(sessionIds);
    expect(await found({ status: 'failed' })).toEqual([]);
    expect(await found({ agentId })).toEqual(sessionIds);
    expect(await found({ environment: 'dev' })).toEqual([sessionIds[2]]);
    expect(await found({ metadata: { place: 'staging' } })).toEqual([sessionIds[1]]);
    expect(await found({ environment: 'dev', metadata: { place: 'staging' } })).toEqual([]);
    expect(await found({ metadata: { kind: 'list', place: 'staging' } })).toEqual([sessionIds[1]]);
    expect(await found({ metadata: { kind: 'other', place: 'staging' } })).toEqual([]);
  });

  test('keep the agent version that they were opened with; an unknown one is a 404', async () => {
    const { client } = service;
    expect((await client.sessions.get(sessionIds[0]!)).agentVersion).toBe(1);
    const missing = client.sessions.open({ agentId, agentVersion: 99, environment: 'dev' });
    await expect(missing).rejects.toMatchObject({ status: 404 });
  });

  test('replace their metadata as a whole, and an empty change changes nothing', async () => {
    const { client } = service;
    const { sessionId } = await client.sessions.open({ agentId, environment: 'dev', metadata: { a: 1, b: 2 } });
    expect((await client.sessions.update(sessionId, {})).metadata).toEqual({ a: 1, b: 2 });
    expect((await client.sessions.update(sessionId, { metadata: { a: 3 } })).metadata).toEqual({ a: 3 });
    const [event] = (await client.events.list({ sessionId, type: 'session.updated' })).data;
    expect(event?.changes).toEqual({ metadata: [{ a: 1, b: 2 }, { a: 3 }] });
  });
});

test('the event log is searched by type, actor, resource, session, environment and time', async () => {
  const { client } = service;
  const whole = (await client.events.list({ limit: 1000, order: 'asc' })).data;
  const opened = whole.find((event) => event.type === 'session.created')!;
  const queries = {
    type: opened.type,
    actorId: opened.actor.id!,
    resourceId: opened.resource.id!,
    sessionId: opened.sessionId!,
    environment: opened.environment!,
    since: opened.occurredAt,
  };
  const matches: Record<keyof typeof queries, (event: typeof opened) => boolean> = {
    type: ({ type }) => type === queries.type,
    actorId: ({ actor }) => actor.id === queries.actorId,
    resourceId: ({ resource }) => resource.id === queries.resourceId,
    sessionId: ({ sessionId }) => sessionId === queries.sessionId,
    environment: ({ environment }) => environment === queries.environment,
    since: ({ occurredAt }) => occurredAt >= queries.since,
  };
  for (const name of Object.keys(queries) as (keyof typeof queries)[]) {
    const { data } = await client.events.list({ [name]: queries[name], limit: 1000, order: 'asc' });
    expect(data, name).toEqual(whole.filter(matches[name]));
    expect(data.length, name).toBeGreaterThan(0);
  }
  const before = await client.events.list({ until: opened.occurredAt, limit: 1000, order: 'asc' });
  expect(before.data).toEqual(whole.filter(({ occurredAt }) => occurredAt < opened.occurredAt));
  expect(await client.events.get(opened.eventId)).toEqual(opened);
});

describe('agents', () => {
  test('are found by parts of words in name, description, model, tools and id, in any case, and by model; page by page', async () => {
    const { client } = service;
    const tool = { type: 'client' as const, name: 'find_parcel', description: '', inputSchema: { type: 'object' } };
    const older = await client.agents.create({
      name: 'Çaba Desk',
      description: 'For 100% of parcels_',
      model: 'openai/gpt-5/large',
      tools: [tool],
    });
    const newer = await client.agents.create({ name: 'çaba desk', model: { provider: 'worker', queue: 'desk' } });
    const find = async (query: { q?: string; model?: string; archived?: boolean }) => {
      const ids: string[] = [];
      for await (const one of client.agents.list({ limit: 1, ...query })) ids.push(one.agentId);
      return ids;
    };
    for (const q of ['find_parcel', 'LARGE caba', '100%', 'parcels_', older.agentId, older.agentId.slice(-6)])
      expect([q, await find({ q })]).toEqual([q, [older.agentId]]);
    expect(await find({ q: ' DESK çab ' })).toEqual([newer.agentId, older.agentId]);
    expect(await find({ model: 'worker/desk' })).toEqual([newer.agentId]);
    expect(await find({ model: 'openai/gpt-5/large', q: 'caba' })).toEqual([older.agentId]);
    for (const none of [
      { q: '%' + '_' },
      { model: 'openai/gpt-5' },
      { q: 'caba', archived: true },
      { q: 'caba nothing' },
    ])
      expect([none, await find(none)]).toEqual([none, []]);
    await client.agents.archive(newer.agentId);
    expect(await find({ q: 'desk' })).toEqual([older.agentId]);
    expect(await find({ q: 'desk', archived: true })).toEqual([newer.agentId]);
    const { secret } = await client.keys.create({ name: 'one', permission: 'read', agents: [older.agentId] });
    expect((await service.clientWith(secret!).agents.list({ q: 'e' })).data.map((one) => one.agentId)).toEqual([
      older.agentId,
    ]);
  });

  test('one page checks a bounded number of agents, and the next continues after them', async () => {
    const organizationId = uuidOf('org', service.organizationId);
    const all: string[] = [];
    let after = sql``;
    let pages = 0;
    for (;;) {
      const found = await findAgents(service.db, organizationId, { q: 'three' }, after, 5, 1);
      all.push(...found.agentIds);
      pages += 1;
      if (found.checkedUntil === undefined) break;
      after = sql`and a.agent_id < ${found.checkedUntil}`;
    }
    expect(all).toEqual([uuidOf('agt', agentId)]);
    expect(pages).toBeGreaterThan(3);
  });
});
