// One decision on many approvals, over HTTP: each is decided as it would be alone, by every kind of caller, on two nodes at once.
import type { Approvers } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyOfPart } from '../../src/http/idempotency/idempotency.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { join, setUp } from '../support/people.ts';
import { type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

type Call = (method: string, path: string, body?: unknown) => Promise<RawResponse>;
interface Outcome {
  operationId: string;
  status: string | null;
  progress: { approved: number; required: number } | null;
  error: { status: number; code: string; detail: string } | null;
}

const rules: Record<string, Approvers> = {
  default: {},
  people: { people: true },
  owners: { roles: ['owner'] },
  keys: { keys: true },
  not_requester: { notRequester: true },
  two: { count: 2 },
};

let service: TestService;
let other: TestService;
const callers: Record<string, Call> = {};
beforeAll(async () => {
  service = await startTestService();
  other = await startTestService({ database: service.database });
  const { client } = service;
  const owner = await setUp(service);
  callers.owner = (method, path, body) => owner.api(method, path, body);
  for (const role of ['member', 'viewer']) {
    const browser = await join(owner, service, role, role);
    callers[role] = (method, path, body) => browser.api(method, path, body);
  }
  const keys = [
    await client.keys.create({ name: 'requester', permission: 'write' }),
    await client.keys.create({ name: 'decider', scopes: ['sessions:read', 'approvals:decide'] }),
    await client.keys.create({ name: 'runner', scopes: ['sessions:read', 'sessions:run'] }),
    await client.keys.create({ name: 'staging', permission: 'write', environments: ['staging'] }),
    await client.keys.create({ name: 'slow', permission: 'write', requestsPerMinute: 3 }),
  ];
  for (const { name, secret } of keys) callers[name] = withSecret(secret!);
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

function withSecret(secret: string, on = service): Call {
  return (method, path, body) => send(on.url, method, path, { key: secret, body });
}

/** Opens a session whose agent makes these calls, and returns their operations by the name of their tool. */
async function asked(calls: string[], by: Call = withSecret(service.adminKey), environment = 'production') {
  const tools = Object.entries(rules).map(([name, approvers]) => ({
    type: 'client' as const,
    name,
    description: 'Pays.',
    inputSchema: { type: 'object' },
    approval: { policy: 'always' as const, by: approvers },
  }));
  const script = [{ toolCalls: calls.map((name, n) => ({ name, input: { n } })) }, { text: 'ok' }];
  const { agentId } = await service.client.agents.create({
    name: 'Payer',
    model: { provider: 'scripted', model: 'x', settings: { script } },
    tools,
  });
  const { json } = await by('POST', '/sessions', {
    agentId,
    environment,
    endUser: { id: 'eve' },
    input: 'Please pay.',
  });
  const { sessionId } = json.session;
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'waiting')) break;
  }
  const ids: string[] = [];
  const names: Record<string, string> = {};
  for await (const { name, operationId } of service.client.approvals.list({ sessionId, limit: 100 })) {
    ids.push(operationId);
    names[operationId] = name;
  }
  expect(ids).toHaveLength(calls.length);
  return { sessionId, agentId, ids, names };
}

async function resolve(call: Call, operationIds: string[], more: object = {}): Promise<Outcome[]> {
  const { status, json } = await call('POST', '/approvals/resolve', {
    operationIds,
    decision: 'approved',
    ...more,
  });
  expect(status, JSON.stringify(json)).toBe(200);
  expect(json.results.map(({ operationId }: Outcome) => operationId)).toEqual(operationIds);
  return json.results;
}

const statusOf = async (operationId: string) => (await service.client.approvals.get(operationId)).status;
async function events(type: 'approval.resolved' | 'approval.decided' | 'access.denied', sessionId?: string) {
  const all = [];
  for await (const event of service.client.events.list({ type, ...(sessionId && { sessionId }), limit: 1000 }))
    all.push(event);
  return all;
}

test.each([
  ['owner', ['default', 'people', 'owners', 'not_requester', 'two']],
  ['member', ['default', 'people', 'not_requester', 'two']],
  ['viewer', []],
  ['requester', ['default', 'keys', 'two']],
  ['decider', ['default', 'keys', 'not_requester', 'two']],
  ['runner', []],
  ['staging', []],
])('the caller %s decides exactly what each approval lets it decide, and the rest stays pending', async (who, may) => {
  const { sessionId, ids, names } = await asked(Object.keys(rules), callers.requester);
  const call = callers[who]!;
  const operationIds = [...ids, 'op_01hzzzzzzzzzzzzzzzzzzzzzzz'];
  if (who === 'viewer' || who === 'runner') {
    const refused = await call('POST', '/approvals/resolve', { operationIds, decision: 'approved' });
    expect([refused.status, refused.json.code]).toEqual([403, 'insufficient_permission']);
    for (const id of ids) expect(await statusOf(id)).toBe('pending');
    return;
  }
  const outcomes = await resolve(call, operationIds, { reason: 'checked' });
  const missing = outcomes.pop()!;
  expect(missing).toMatchObject({ status: null, progress: null, error: { status: 404, code: 'not_found' } });
  const decided = outcomes.filter(({ error }) => error === null).map(({ operationId }) => names[operationId]);
  expect(decided.sort()).toEqual([...may].sort());
  for (const { operationId, status, progress, error } of outcomes) {
    const isTwo = names[operationId] === 'two';
    if (error === null) {
      expect([status, progress]).toEqual(
        isTwo ? ['pending', { approved: 1, required: 2 }] : ['approved', { approved: 1, required: 1 }],
      );
    } else {
      expect([error.status, error.code]).toEqual([
        403,
        who === 'staging' ? 'insufficient_permission' : 'not_an_approver',
      ]);
      expect(error.detail).toMatch(/\.$/);
    }
    expect(await statusOf(operationId)).toBe(status ?? 'pending');
  }
  // Events are the same as one by one.
  expect(await events('approval.resolved', sessionId)).toHaveLength(may.filter((name) => name !== 'two').length);
  expect(await events('approval.decided', sessionId)).toHaveLength(may.includes('two') ? 1 : 0);
  const denied = (await events('access.denied')).map(({ changes }) => changes?.code?.[1]);
  for (const { error } of outcomes) if (error) expect(denied).toContain(error.code);
});

test('a session token can’t decide several approvals', async () => {
  const { sessionId, ids } = await asked(['default']);
  const { token } = await service.client.sessions.createToken(sessionId, { scopes: ['read', 'decide'] });
  const { status } = await withSecret(token!)('POST', '/approvals/resolve', {
    operationIds: ids,
    decision: 'approved',
  });
  expect(status).toBe(404);
  expect(await statusOf(ids[0]!)).toBe('pending');
});

test('a request is refused whole if its ids are too many, repeated, none or of something else', async () => {
  const { ids } = await asked(['default']);
  const [id = ''] = ids;
  const many = Array.from({ length: 101 }, (_, n) => `op_01hzzzzzzzzzzzzzzzzzzzz${String(n).padStart(3, '0')}`);
  for (const operationIds of [
    [],
    [id, id],
    [id, 'ses_01hzzzzzzzzzzzzzzzzzzzzzzz'],
    [id, ...many.slice(1)].concat(many[0]!),
    id,
  ]) {
    const { status } = await callers.owner!('POST', '/approvals/resolve', { operationIds, decision: 'approved' });
    expect(status, JSON.stringify(operationIds)).toBe(400);
  }
  // One input can't fit several calls.
  const edited = await callers.owner!('POST', '/approvals/resolve', {
    operationIds: ids,
    decision: 'approved',
    input: {},
  });
  expect(edited.status).toBe(400);
  expect(await statusOf(id)).toBe('pending');
});

test('each approval counts as a request of a key that is limited, and those beyond the limit stay pending', async () => {
  const { ids } = await asked(Array<string>(5).fill('default'));
  const outcomes = await resolve(callers.slow!, ids);
  expect(outcomes.map(({ error }) => error?.code ?? 'decided').toSorted()).toEqual([
    ...Array<string>(3).fill('decided'),
    ...Array<string>(2).fill('rate_limited'),
  ]);
});

test('a repeated request gets the first response; with another body it is refused', async () => {
  const { sessionId, ids } = await asked(['two', 'default']);
  const post = (body: object) =>
    service.fetch('/api/v1/approvals/resolve', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'once' },
      body: JSON.stringify({ operationIds: ids, decision: 'approved', ...body }),
    });
  const first = await post({});
  const text = await first.text();
  const second = await post({});
  expect([second.status, second.headers.get('idempotent-replayed'), await second.text()]).toEqual([200, 'true', text]);
  const third = await post({ decision: 'denied' });
  expect([third.status, ((await third.json()) as { code: string }).code]).toEqual([409, 'idempotency_conflict']);
  expect(await events('approval.decided', sessionId)).toHaveLength(1);
});

test('a request that was interrupted continues where it stopped when it is repeated', async () => {
  const { sessionId, ids } = await asked(['two', 'two', 'two']);
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'interrupted' };
  const body = JSON.stringify({ operationIds: ids, decision: 'approved' });
  const post = () => service.fetch('/api/v1/approvals/resolve', { method: 'POST', headers, body });
  expect((await post()).status).toBe(200);
  // As after a crash in the middle: the request has no response yet, and the last of its parts no record and no effect.
  const last = ids[2]!;
  await service.db.transaction(async (tx) => {
    await tx.query(sql`
      update idempotency_records set status = null, body = null
      where idempotency_key = 'interrupted'`);
    await tx.query(sql`delete from idempotency_records where idempotency_key = ${keyOfPart('interrupted', last)}`);
    await tx.query(sql`
      update approvals set decisions = '[]' where operation_id = ${uuidOf('op', last)}`);
  });
  const { results } = (await (await post()).json()) as { results: Outcome[] };
  expect(results.map(({ status, progress, error }) => [status, progress?.approved, error])).toEqual(
    Array(3).fill(['pending', 1, null]),
  );
  // The last one twice: once undone by the test.
  expect(await events('approval.decided', sessionId)).toHaveLength(4);
});

test('a request that meets a part of an earlier one in progress is not answered for good', async () => {
  const { ids } = await asked(['default', 'default']);
  const { organization, apiKey } = await service.client.me();
  const post = () =>
    service.fetch('/api/v1/approvals/resolve', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'in progress' },
      body: JSON.stringify({ operationIds: ids, decision: 'approved' }),
    });
  // The transaction of a part, on a node that stops before it ends.
  await service.db
    .transaction(async (tx) => {
      await tx.query(sql`
        insert into idempotency_records (organization_id, caller_id, idempotency_key, fingerprint, expires_at)
        values (${uuidOf('org', organization.organizationId)}, ${uuidOf('key', apiKey!.keyId)}, ${keyOfPart('in progress', ids[0]!)}, '\\x00', now() + interval '1 day')`);
      const refused = await post();
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([409, '1']);
      expect(await refused.json()).toMatchObject({ code: 'idempotency_in_progress' });
      throw new Error('the node stops');
    })
    .catch((error: Error) => expect(error.message).toBe('the node stops'));
  const response = await post();
  expect(response.status).toBe(200);
  const { results } = (await response.json()) as { results: Outcome[] };
  expect(results.map(({ status, error }) => [status, error])).toEqual(Array(2).fill(['approved', null]));
});

test('of opposite decisions on 500 approvals, sent to two nodes at once, each approval gets exactly one', async () => {
  const sessions = await Promise.all(Array.from({ length: 25 }, () => asked(Array<string>(20).fill('default'))));
  const ids = sessions.flatMap((session) => session.ids);
  expect(ids).toHaveLength(500);
  const there = withSecret(service.adminKey, other);
  const batches = Array.from({ length: 5 }, (_, n) => ids.slice(n * 100, (n + 1) * 100));
  const sent = await Promise.all([
    ...batches.map((batch) => resolve(callers.owner!, batch)),
    ...batches.map((batch) => resolve(there, batch.toReversed(), { decision: 'denied', reason: 'no' })),
  ]);
  const outcomes = sent.flat();
  const final = new Map<string, string>();
  for (const { sessionId } of sessions)
    for await (const { operationId, status } of service.client.approvals.list({ sessionId, limit: 100 }))
      final.set(operationId, status);
  expect([...final.values()].filter((status) => status === 'pending')).toEqual([]);
  for (const id of ids) {
    const two = outcomes.filter(({ operationId }) => operationId === id);
    expect(two.map(({ status, error }) => error?.code ?? status).toSorted()).toEqual(
      [final.get(id)!, 'approval_already_resolved'].toSorted(),
    );
  }
  const resolved = await Promise.all(sessions.map(({ sessionId }) => events('approval.resolved', sessionId)));
  expect(resolved.flat()).toHaveLength(500);
});
