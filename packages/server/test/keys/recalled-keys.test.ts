// A node that has read a key opens sessions for it without looking it up first: the transaction checks it. Whatever has changed about the
// key since, through another node or in the database, is seen as if it had been looked up.
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const clock = createManualClock(new Date());
let service: TestService;
/** On the same database. It reads no key before it was changed. */
let other: TestService;
let agentId: string;
let otherAgentId: string;

beforeAll(async () => {
  service = await startTestService({ clock });
  other = await startTestService({ clock, database: service.database });
  const create = async () => (await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' })).agentId;
  [agentId, otherAgentId] = [await create(), await create()];
});

afterAll(async () => {
  await other.stop();
  await service.stop();
});

interface Key {
  keyId: string;
  secret: string;
}

interface Sent {
  body?: object;
  /** Sent unchanged. */
  raw?: string;
  headers?: Record<string, string>;
}

async function createKey(more: object = {}): Promise<Key> {
  const { keyId, secret } = await service.client.keys.create({ name: 'k', permission: 'write', ...more });
  return { keyId, secret: secret! };
}

function open(key: Key, { body = {}, raw, headers = {} }: Sent = {}, node = service): Promise<RawResponse> {
  const whole = { agentId, environment: 'production', ...body };
  return send(node.url, 'POST', '/sessions', { key: key.secret, headers, ...(raw ? { raw } : { body: whole }) });
}

/** Its first request is looked up. */
async function remember(key: Key, sent?: Sent): Promise<void> {
  expect((await open(key, sent)).status).toBe(201);
}

/** Which statements read the key: a look-up, or the check of a transaction. */
async function readsOf(act: () => Promise<unknown>): Promise<string[]> {
  const reads: string[] = [];
  const hear = (text: unknown) => {
    if (!String(text).includes('from api_keys k')) return;
    if (String(text).includes('"lastUsedAt"')) reads.push('look-up');
    if (String(text).includes('count(*)')) reads.push('check');
  };
  subscribe('signalbox.statement', hear);
  try {
    await act();
  } finally {
    unsubscribe('signalbox.statement', hear);
  }
  return reads;
}

function change({ keyId }: Key, set: Sql): Promise<number> {
  return service.db.execute(sql`
    update api_keys set ${set}
    where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', keyId)}`);
}

async function sessionsOf({ keyId }: Key): Promise<number> {
  const [row] = await service.db.query<{ count: number }>(sql`
    select count(*)::int as count from sessions
    where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', keyId)}`);
  return row!.count;
}

/** The codes of its refusals in the event log. */
async function denialsOf({ keyId }: Key): Promise<unknown[]> {
  const { data } = await service.client.events.list({ type: 'access.denied', actorId: keyId });
  return data.map(({ changes }) => changes?.code?.[1]);
}

const shown = ({ status, json, headers }: RawResponse) => ({
  status,
  code: json.code,
  detail: json.detail,
  errors: json.errors,
  // Not how many requests are left: the second one always has fewer.
  headers: ['ratelimit-policy', 'ratelimit', 'retry-after', 'www-authenticate'].map((name) =>
    headers.get(name)?.replace(/r=\d+/, ''),
  ),
});

test('a session is opened in one round trip, in which the key is checked', async () => {
  const key = await createKey();
  expect(await readsOf(() => remember(key))).toEqual(['look-up']);
  for (const headers of [{}, { 'idempotency-key': 'once' }, { accept: 'text/event-stream' }]) {
    expect(await readsOf(() => remember(key, { headers }))).toEqual(['check']);
  }
});

const changes: [what: string, act: (key: Key) => Promise<unknown>, refusal: [number, string | undefined]][] = [
  ['deleted', ({ keyId }) => other.client.keys.delete(keyId), [401, 'token_revoked']],
  ['rotated', ({ keyId }) => other.client.keys.rotate(keyId), [401, 'token_rotated']],
  [
    'rotated, and its old secret has ended',
    async (key) => {
      await other.client.keys.rotate(key.keyId, { gracePeriodSeconds: 3600 });
      await change(key, sql`old_secret_expires_at = now()`);
    },
    [401, 'token_rotated'],
  ],
  ['expired', (key) => change(key, sql`expires_at = now()`), [401, 'token_expired']],
  ['given another secret in the database', (key) => change(key, sql`secret_hash = '\\x00'`), [401, 'invalid_token']],
  [
    'deleted from the database',
    ({ keyId }) =>
      service.db.execute(sql`
        delete from api_keys
        where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', keyId)}`),
    [401, 'invalid_token'],
  ],
  ['limited to an address', limited({ allowedIps: ['10.0.0.0/8'] }), [403, 'ip_not_allowed']],
  ['made read-only', limited({ permission: 'read' }), [403, 'insufficient_permission']],
  ['limited to an environment', limited({ environments: ['staging'] }), [403, 'insufficient_permission']],
  ['limited to an agent', (key) => limited({ agents: [otherAgentId] })(key), [403, 'insufficient_permission']],
  ['limited in its requests', limited({ requestsPerMinute: 2 }), [201, undefined]],
];

function limited(input: object) {
  return ({ keyId }: Key) => other.client.keys.update(keyId, input);
}

const requests: [what: string, sent: Sent][] = [
  ['a valid request', {}],
  ['a request with a stream', { headers: { accept: 'text/event-stream' } }],
  ['a request with an idempotency key', { headers: { 'idempotency-key': 'new' } }],
  ['a repeated request', { headers: { 'idempotency-key': 'repeated' } }],
  ['a request for an unknown agent', { body: { agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c' } }],
  ['an invalid field', { body: { environment: 7 } }],
  ['an invalid idempotency key', { headers: { 'idempotency-key': 'é' } }],
  ['a body that is not JSON', { raw: '{' }],
  ['a body of another type', { headers: { 'content-type': 'text/plain' } }],
];
const isValid = (what: string) => requests.findIndex(([one]) => one === what) < 4;

describe.each(changes)('a key that a node remembers and that was %s', (_, act, [status, code]) => {
  test.each(requests)('gets the response that it would get after a look-up: %s', async (what, sent) => {
    const isRepeated = what === 'a repeated request';
    const key = await createKey();
    await remember(key);
    if (isRepeated) await remember(key, sent);
    const before = await sessionsOf(key);
    await act(key);
    const response = await open(key, sent);
    expect(await sessionsOf(key)).toBe(before + (isValid(what) && !isRepeated && status === 201 ? 1 : 0));
    if (isValid(what)) {
      expect([response.status, response.json?.code]).toEqual([status, code]);
      expect(await denialsOf(key)).toEqual(code && code !== 'invalid_token' ? [code] : []);
    }
    if (status === 401) expect(response.json.code).toBe(code);
    if (response.status !== 201) expect(shown(response)).toEqual(shown(await open(key, sent, other)));
  });
});

test('a limit of requests that was added is counted from the next request on', async () => {
  const key = await createKey();
  await remember(key);
  await other.client.keys.update(key.keyId, { requestsPerMinute: 2 });
  const statuses = [];
  for (let at = 0; at < 3; at += 1) statuses.push((await open(key)).status);
  expect(statuses).toEqual([201, 201, 429]);
});

test('a renamed key is checked with its new name', async () => {
  const key = await createKey();
  await remember(key);
  await other.client.keys.update(key.keyId, { name: 'renamed' });
  expect(await readsOf(() => remember(key))).toEqual(['check', 'look-up']);
  const [event] = (await service.client.events.list({ type: 'session.created', actorId: key.keyId, limit: 1 })).data;
  expect(event!.actor.name).toBe('renamed');
  expect(await readsOf(() => remember(key))).toEqual(['check']);
});

test('both secrets work during the grace period of a rotation', async () => {
  const key = await createKey();
  await remember(key);
  const { secret } = await other.client.keys.rotate(key.keyId, { gracePeriodSeconds: 3600 });
  for (const one of [key, { ...key, secret: secret! }]) {
    await remember(one);
    expect(await readsOf(() => remember(one))).toEqual(['check']);
  }
});

test('a key that is limited to an environment is checked as well, and kept to it', async () => {
  const key = await createKey({ environments: ['staging'] });
  const own = { body: { environment: 'staging' } };
  await remember(key, own);
  expect(await readsOf(() => remember(key, own))).toEqual(['check']);
  const refused = await open(key);
  expect([refused.status, refused.json.code]).toEqual([403, 'insufficient_permission']);
  expect(await denialsOf(key)).toEqual(['insufficient_permission']);
});

test('lastUsedAt of a key that is only checked is accurate to a minute', async () => {
  const key = await createKey();
  await remember(key);
  await clock.advance(61_000);
  expect(await readsOf(() => remember(key))).toEqual(['check']);
  const lastUsedAt = async () => (await service.client.keys.get(key.keyId)).lastUsedAt;
  await expect.poll(lastUsedAt).toBe(clock.now().toISOString());
});

test('requests that share a commit are refused or accepted each by its own key', async () => {
  const [kept, deleted] = [await createKey(), await createKey()];
  await Promise.all([remember(kept), remember(deleted)]);
  await other.client.keys.delete(deleted.keyId);
  const responses = await Promise.all(
    Array.from({ length: 32 }, (_, index) =>
      open(index % 2 ? deleted : kept, { headers: { 'idempotency-key': randomUUID() } }),
    ),
  );
  expect(responses.map(({ status }) => status)).toEqual(responses.map((_, index) => (index % 2 ? 401 : 201)));
  expect(await Promise.all([sessionsOf(kept), sessionsOf(deleted)])).toEqual([17, 1]);
});

test('every request is counted once as an authentication', async () => {
  const counts = async (code: string) => {
    const text = await (await service.fetch('/metrics')).text();
    return Number(new RegExp(`authentications_total{[^}]*code="${code}"[^}]*} (\\d+)`).exec(text)?.[1] ?? 0);
  };
  const key = await createKey();
  await remember(key);
  const [ok, revoked] = [await counts('ok'), await counts('token_revoked')];
  await remember(key);
  expect((await open(key, { raw: '{' })).status).toBe(400);
  expect(await counts('ok')).toBe(ok + 2);
  await remember(key);
  await other.client.keys.delete(key.keyId);
  expect((await open(key)).status).toBe(401);
  expect([await counts('ok'), await counts('token_revoked')]).toEqual([ok + 3, revoked + 1]);
});
