// A node opens a session of an agent that it knows without reading the agent, environment or idempotency record first. What another
// node has changed since is seen anyway.
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDb } from '../../src/db/db.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let other: TestService;
let agentId: string;

beforeAll(async () => {
  service = await startTestService();
  other = await startTestService({ database: service.database });
});

beforeEach(async () => {
  ({ agentId } = await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' }));
  await open();
});

afterAll(async () => {
  await other.stop();
  await service.stop();
});

function open(body: object = {}, headers: Record<string, string> = {}, from = service): Promise<Response> {
  return from.fetch('/api/v1/sessions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ agentId, environment: 'production', input: 'Hello', ...body }),
  });
}

/** How many statements read the newest version of an agent, or lock an environment, before anything is written. */
async function readsOf(act: () => Promise<unknown>): Promise<number> {
  let reads = 0;
  const hear = (text: unknown) => {
    const words = String(text).trim().replaceAll(/\s+/g, ' ');
    if (/^select (version, .* from agents|1 from environments) where/.test(words)) reads += 1;
  };
  subscribe('signalbox.statement', hear);
  try {
    await act();
  } finally {
    unsubscribe('signalbox.statement', hear);
  }
  return reads;
}

const withKey = (key: string) => ({ 'idempotency-key': key });

test.each([{}, withKey('unread')])('the agent and the environment are not read before %j', async (headers) => {
  const opened = async () => expect((await open({ input: undefined }, headers)).status).toBe(201);
  expect(await readsOf(opened)).toBe(0);
  // For a version that the caller names, they are.
  expect(await readsOf(() => open({ input: undefined, agentVersion: 1 }))).toBe(2);
});

test.each([{}, withKey('version')])(
  'a session runs the version that another node has just created %j',
  async (headers) => {
    await other.client.agents.update(agentId, { instructions: 'Be brief.' });
    const { session } = (await (await open({ closeOnIdle: true }, headers)).json()) as {
      session: { sessionId: string };
    };
    expect(await versionOf(session.sessionId)).toBe(2);
  },
);

test.each([{}, withKey('archived')])(
  'an agent that another node has just archived opens no session %j',
  async (headers) => {
    await other.client.agents.archive(agentId);
    const response = await open({}, headers);
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ code: 'agent_archived' });
  },
);

test.each([{}, withKey('environment')])(
  'an environment that another node has just deleted opens no session %j',
  async (headers) => {
    await service.client.environments.create({ name: 'passing' });
    await other.client.environments.delete('passing');
    const response = await open({ environment: 'passing' }, headers);
    expect(response.status).toBe(404);
  },
);

test.each([{}, withKey('erasing')])('an end user who is being erased gets no session %j', async (headers) => {
  const endUser = { id: randomUUID() };
  const erased = uuidOf('org', (await service.client.organization.get()).organizationId);
  expect((await open({ endUser })).status).toBe(201);
  await service.db.execute(sql`
    insert into end_user_erasures (organization_id, pseudonym, end_user_id, sessions, files, schedules, requested_by, started_at)
    values (${erased}, ${Buffer.from(endUser.id)}, ${endUser.id}, 0, 0, 0, '{"type":"system"}', now() + interval '1 day')`);
  const response = await open({ endUser }, headers);
  expect(response.status).toBe(409);
});

test('requests with the same key that arrive at once on two nodes open one session', async () => {
  const sent = Array.from({ length: 20 }, (_, index) =>
    open({}, { ...withKey('at once'), authorization: `Bearer ${service.adminKey}` }, index % 2 ? other : service),
  );
  const responses = await Promise.all(sent);
  const opened = await Promise.all(responses.map((response) => response.json() as Promise<Record<string, never>>));
  const ids = new Set(opened.flatMap(({ session }) => (session ? [(session as { sessionId: string }).sessionId] : [])));
  expect(ids.size).toBe(1);
  for (const [index, { status }] of responses.entries())
    expect(status === 201 || opened[index]!.code === 'idempotency_in_progress', JSON.stringify(opened[index])).toBe(
      true,
    );
  const again = await open({}, withKey('at once'));
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  const [replayed] = [...ids];
  expect(await again.json()).toMatchObject({ session: { sessionId: replayed } });
});

test('a key that was used for another body is refused', async () => {
  expect((await open({}, withKey('other body'))).status).toBe(201);
  const response = await open({ input: 'Something else' }, withKey('other body'));
  expect(await response.json()).toMatchObject({ code: 'idempotency_conflict' });
});

test('while the first request with a key runs, the next one does not wait for it', async () => {
  const db = createDb({ url: service.database.url });
  try {
    const [record] = await db.query<{ organizationId: string; callerId: string }>(sql`
      select organization_id as "organizationId", caller_id as "callerId" from idempotency_records limit 1`);
    await db.transaction(async (tx) => {
      await tx.query(sql`
        insert into idempotency_records (organization_id, caller_id, idempotency_key, fingerprint, expires_at)
        values (${record!.organizationId}, ${record!.callerId}, 'held', ${Buffer.alloc(32)}, now() + interval '1 day')`);
      const response = await open({}, withKey('held'));
      expect(await response.json()).toMatchObject({ code: 'idempotency_in_progress' });
    });
  } finally {
    await db.close();
  }
});

test('sessions that are opened at once share commits, and each has its first turn', async () => {
  const ids = await Promise.all(
    Array.from({ length: 64 }, async (_, index) => {
      const response = await open({ closeOnIdle: true }, index % 2 ? withKey(`shared ${index}`) : {});
      return ((await response.json()) as { session: { sessionId: string } }).session.sessionId;
    }),
  );
  expect(await Promise.all(ids.map(versionOf))).toEqual(ids.map(() => 1));
  const db = createDb({ url: service.database.url });
  // A message is written once, in the transaction that opens its session or the one that ends its turn.
  const [row] = await db.query<{ commits: number; messages: number }>(sql`
    select count(distinct xmin::text)::int as commits, count(*)::int as messages from messages
    where session_id = any(${ids.map((id) => uuidOf('ses', id))}::uuid[])`);
  await db.close();
  expect(row!.messages).toBe(128);
  expect(row!.commits).toBeLessThan(128);
});

/** The agent's version in a session that has completed. */
async function versionOf(sessionId: string): Promise<number | null> {
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('completed');
  return (await service.client.sessions.get(sessionId)).agentVersion;
}
