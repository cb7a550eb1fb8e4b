// Cancelling, closing and exporting many sessions.
import sql from 'sql-template-tag';
import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { idle } from '../support/idle.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let other: TestService;
let echo: string;
let asking: string;
beforeAll(async () => {
  service = await startTestService();
  other = await startTestService({ database: service.database });
  const { agents } = service.client;
  echo = (await agents.create({ name: 'Echo', model: 'scripted/echo' })).agentId;
  const script = [{ toolCalls: [{ name: 'wait', input: {} }] }, { text: 'Done.' }];
  const tools = [{ type: 'client' as const, name: 'wait', description: 'Waits.', inputSchema: { type: 'object' } }];
  const model = { provider: 'scripted' as const, model: 'demo', settings: { script } };
  asking = (await agents.create({ name: 'Asks', model, tools })).agentId;
});

/** Idle sessions, as if they had been opened without input. */
async function fill(count: number, endUserId: string): Promise<void> {
  const { db } = service;
  const organizationId = uuidOf('org', service.organizationId);
  const ids = Array.from({ length: count }, () => newUuid());
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, end_user_id,
      created_at, updated_at)
    select ${organizationId}::uuid, x, ${uuidOf('agt', echo)}::uuid, 'production', 'idle', false, '{}', ${endUserId}, now(), now()
    from unnest(${ids}::uuid[]) x`);
  await db.execute(sql`
    insert into session_end_users (organization_id, session_id, end_user_id)
    select ${organizationId}::uuid, x, ${endUserId} from unnest(${ids}::uuid[]) x`);
}

describe('cancelling many', () => {
  test('by two nodes at once, ends each of 500 sessions once and records each once', async () => {
    await fill(500, 'many');
    const changes = [service, other].map(async ({ client }) => {
      const seen: (string | null)[] = [];
      for await (const { status, error } of client.sessions.cancelMany({ endUserId: 'many', limit: 100 }))
        seen.push(error?.code ?? status);
      return seen;
    });
    const [mine = [], theirs = []] = await Promise.all(changes);
    expect(new Set([...mine, ...theirs])).toEqual(new Set(['cancelled']));
    const left = await service.client.sessions.count({ endUserId: 'many', status: 'idle' });
    expect(left).toEqual({ count: 0, isExact: true });
    let events = 0;
    for await (const { sessionId } of service.client.events.list({ type: 'session.cancelled', limit: 1000 }))
      if (sessionId) events += 1;
    expect(events).toBe(500);
  });

  test('stops when its client leaves, which is no fault of the service', async () => {
    await fill(20, 'leaving');
    const { db } = service;
    const organizationId = uuidOf('org', service.organizationId);
    const isCancelled = sql`
      select from sessions where organization_id = ${organizationId} and end_user_id = 'leaving' and status = 'cancelled'`;
    const gone = new AbortController();
    const before = service.logLines.length;
    await db.transaction(async (tx) => {
      // So that the request can't end before its client leaves.
      await tx.query(sql`
        select from sessions where organization_id = ${organizationId} and end_user_id = 'leaving'
        order by session_id limit 10 for update`);
      const asked = service.fetch('/api/v1/sessions/cancel', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ endUserId: 'leaving' }),
        signal: gone.signal,
      });
      const left = expect(asked).rejects.toThrow();
      const waiting = sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await expect.poll(() => db.query(waiting)).not.toEqual([]);
      gone.abort();
      await left;
      // The service has seen that the client left before it reads what comes later.
      for (let n = 0; n < 3; n += 1) await service.client.me();
    });
    await idle();
    expect(await db.execute(isCancelled)).toBeLessThan(20);
    expect(service.logLines.slice(before).filter((line) => line.includes('"error"'))).toEqual([]);
  });

  test('reports each named session: changed, changed before, ended otherwise, or not found', async () => {
    const { sessions } = service.client;
    const open = async (more: object = {}) =>
      (await sessions.open({ agentId: asking, environment: 'staging', ...more })).sessionId;
    const [idle, waiting, ended] = [await open(), await open({ input: 'go' }), await open()];
    await expect.poll(async () => (await sessions.get(waiting)).status).toBe('waiting');
    await sessions.close(ended);
    const missing = 'ses_00000000000000000000000000';
    const sessionIds = [idle, waiting, ended, missing, idle];
    const outcomes = async () =>
      (await sessions.cancelMany({ sessionIds })).data.map(({ sessionId, status, error }) => [
        sessionId,
        status,
        error?.code,
      ]);
    const expected = [
      [idle, 'cancelled', undefined],
      [waiting, 'cancelled', undefined],
      [ended, 'completed', 'session_ended'],
      [missing, null, 'not_found'],
    ];
    expect(await outcomes()).toEqual(expected);
    expect(await outcomes()).toEqual(expected);
  });

  test('closes running sessions after their turn, and only the newest up to the limit', async () => {
    const { sessions } = service.client;
    const endUser = { id: 'closing' };
    const opened: string[] = [];
    for (let n = 0; n < 3; n++)
      opened.unshift((await sessions.open({ agentId: echo, environment: 'staging', endUser })).sessionId);
    const first = await sessions.closeMany({ endUserId: 'closing', limit: 2 });
    expect(first.data).toEqual(
      opened.slice(0, 2).map((sessionId) => ({ sessionId, status: 'completed', error: null })),
    );
    expect(first.hasMore).toBe(true);
    expect((await first.nextPage()).data).toEqual([{ sessionId: opened[2], status: 'completed', error: null }]);
  });

  test('needs a filter, and a key only reaches what it may', async () => {
    const { sessions, keys } = service.client;
    const refused = { status: 400, code: 'invalid_request' };
    await expect(sessions.cancelMany({})).rejects.toMatchObject(refused);
    await expect(sessions.cancelMany({ sessionIds: [] })).rejects.toMatchObject(refused);
    const tooMany = Array.from({ length: 501 }, () => 'ses_00000000000000000000000000');
    await expect(sessions.cancelMany({ sessionIds: tooMany })).rejects.toMatchObject(refused);
    const { sessionId } = await sessions.open({ agentId: echo, environment: 'production' });
    const limited = async (more: object) => {
      const { secret } = await keys.create({ name: 'limited', permission: 'write', ...more });
      return service.clientWith(secret!).sessions;
    };
    const reader = await limited({ permission: 'read' });
    await expect(reader.cancelMany({ sessionIds: [sessionId] })).rejects.toMatchObject({ status: 403 });
    for (const keyOf of [{ environments: ['staging'] }, { agents: [asking] }]) {
      const { data } = await (await limited(keyOf)).cancelMany({ sessionIds: [sessionId] });
      expect(data).toMatchObject([{ sessionId, status: null, error: { code: 'not_found' } }]);
    }
    expect((await sessions.get(sessionId)).status).toBe('idle');
  });
});

test('an export has all pages of the list, in its order, and no cell of the CSV is a formula', async () => {
  const { sessions } = service.client;
  for (const input of ['=1+1', '+1', '-1', '@x', '\t=1', 'a "quoted", one\nand two'])
    await sessions.open({ agentId: asking, environment: 'production', input, endUser: { id: 'exported' } });
  await fill(250, 'exported');
  const listed: string[] = [];
  for await (const { sessionId } of sessions.list({ endUserId: 'exported', limit: 100 })) listed.push(sessionId);
  const exported: string[] = [];
  for await (const { sessionId } of sessions.export({ endUserId: 'exported' })) exported.push(sessionId);
  expect(exported).toEqual(listed);
  expect(exported).toHaveLength(256);
  const csv = await new Response(await sessions.download({ endUserId: 'exported', format: 'csv' })).text();
  const [header = '', ...lines] = csv.trimEnd().split('\r\n');
  expect(header.split(',')).toContain('preview');
  expect(lines).toHaveLength(256);
  expect(csv).not.toMatch(/(^|,)"?\s*[=+@]/m);
  expect(csv).toContain(",'=1+1,");
  expect(csv).toContain('"a ""quoted"", one and two"');
});
