// API keys: creation, permissions, expiry, rotation and deletion.
import { NotFoundError } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDb } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { createAuthenticator } from '../../src/keys/authenticate.ts';
import { newSecret } from '../../src/keys/secret.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
const clock = createManualClock();
beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.stop());

const me = async (key: string | undefined, headers: Record<string, string> = {}) =>
  send(service.url, 'GET', '/me', { ...(key !== undefined && { key }), headers });
// The real clock, like that of the database.
const inOneHour = () => new Date(Date.now() + 3600_000).toISOString();
const codeOf = async (key: string | undefined, headers?: Record<string, string>) =>
  asProblem(await me(key, headers)).code;

test('a secret is shown only on creation and rotation', async () => {
  const { client } = service;
  const created = await client.keys.create({ name: 'one', permission: 'read', metadata: { team: 'a' } });
  expect(created.secret).toMatch(/^sbk_[0-9A-Za-z]{83}$/);
  expect(created.secretPreview).toBe(`sbk_…${created.secret!.slice(-4)}`);
  for (const seen of [
    await client.keys.get(created.keyId),
    await client.keys.update(created.keyId, { name: 'renamed' }),
    (await client.keys.list()).data.find(({ keyId }) => keyId === created.keyId),
  ]) {
    expect(seen).not.toHaveProperty('secret');
    expect(seen).toMatchObject({ secretPreview: created.secretPreview, metadata: { team: 'a' }, lastUsedAt: null });
  }
  const rotated = await client.keys.rotate(created.keyId);
  expect(rotated.secret).not.toBe(created.secret);
  expect(rotated).toMatchObject({ keyId: created.keyId, name: 'renamed', permission: 'read' });
});

test('each way in which a key can fail has its code, and the response names the required header', async () => {
  const { client } = service;
  const expiring = await client.keys.create({ name: 'expiring', permission: 'read', expiresAt: inOneHour() });
  const rotated = await client.keys.create({ name: 'rotated', permission: 'read' });
  const deleted = await client.keys.create({ name: 'deleted', permission: 'read' });
  const fresh = await client.keys.rotate(rotated.keyId);
  await client.keys.delete(deleted.keyId);

  expect((await me(expiring.secret)).status).toBe(200);
  await service.db.execute(sql`
    update api_keys set expires_at = now() where organization_id = ${uuidOf('org', service.organizationId)}
      and key_id = ${uuidOf('key', expiring.keyId)}`);
  expect(await codeOf(expiring.secret)).toBe('token_expired');
  expect(await codeOf(rotated.secret)).toBe('token_rotated');
  expect((await me(fresh.secret)).status).toBe(200);
  expect(await codeOf(deleted.secret)).toBe('token_revoked');
  expect(await codeOf(undefined)).toBe('missing_token');
  expect(await codeOf(undefined, { authorization: 'Basic YTpi' })).toBe('malformed_token');
  expect(await codeOf('sbk_nonsense')).toBe('malformed_token');
  const last = fresh.secret!.at(-1) === 'a' ? 'b' : 'a';
  expect(await codeOf(fresh.secret!.slice(0, -1) + last)).toBe('malformed_token');
  expect((await me(undefined)).headers.get('www-authenticate')).toBe('Bearer');
});

test.each([
  ['the word is missing', (key: string) => key, 'The word `Bearer` is missing'],
  ['another scheme', (key: string) => `Token ${key}`, 'The scheme is not `Bearer`'],
  ['nothing after it', () => 'Bearer', 'nothing after'],
  ['quotation marks', (key: string) => `Bearer "${key}"`, 'quotation marks'],
  ['a space in it', (key: string) => `Bearer ${key.slice(0, 20)} ${key.slice(20)}`, 'white space'],
  ['cut off', (key: string) => `Bearer ${key.slice(0, -2)}`, '85 characters instead of 87'],
  ['a wrong character', (key: string) => `Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`, 'A character'],
  ['a signing secret', () => 'Bearer whsec_x', 'signing secret of a webhook subscription'],
  ['the key of a provider', () => 'Bearer sk-x', 'API key of a model provider'],
  ['anything else', () => 'Bearer x', 'API keys begin with `sbk_`'],
])('the refusal of a malformed key says what is wrong, and repeats nothing of it: %s', async (_, header, text) => {
  const response = await send(service.url, 'GET', '/me', { headers: { authorization: header(service.adminKey) } });
  expect(response.json).toMatchObject({ code: 'malformed_token', detail: expect.stringContaining(text) });
  expect(response.text).not.toContain(service.adminKey.slice(20, 60));
});

test('a key expires by the database’s clock, even if a node’s clock is an hour slow or fast', async () => {
  const HOUR_MS = 3600_000;
  const nodeOff = (ms: number) =>
    startTestService({ clock: createManualClock(new Date(Date.now() + ms)), database: service.database });
  const [slow, fast] = await Promise.all([nodeOff(-HOUR_MS), nodeOff(HOUR_MS)]);
  const made = (expiresAt: number) =>
    slow.client.keys.create({ name: 'x', permission: 'read', expiresAt: new Date(expiresAt).toISOString() });
  // Half an hour ago is in the future for the slow node. In half an hour is in the past for the fast one.
  const [over, good] = [await made(Date.now() - HOUR_MS / 2), await made(Date.now() + HOUR_MS / 2)];
  for (const { url } of [slow, fast]) {
    expect(asProblem(await send(url, 'GET', '/me', { key: over.secret! })).code).toBe('token_expired');
    expect((await send(url, 'GET', '/me', { key: good.secret! })).status).toBe(200);
  }
  for (const node of [slow, fast]) await node.stop();
});

test('a wrong secret of a known key and a well-formed secret of an unknown key get the same refusal', async () => {
  const { organization, apiKey } = await service.client.me();
  const organizationId = uuidOf('org', organization.organizationId);
  const otherSecret = newSecret(organizationId, uuidOf('key', apiKey!.keyId));
  const otherKey = newSecret(organizationId, newUuid());
  const answers = [asProblem(await me(otherSecret)), asProblem(await me(otherKey))];
  expect(answers.map(({ code }) => code)).toEqual(['invalid_token', 'invalid_token']);
  expect(answers[0]!.detail).toBe(answers[1]!.detail);
});

test('the codes of rotated and deleted secrets are kept for 90 days', async () => {
  const key = await service.client.keys.create({ name: 'old', permission: 'read' });
  await service.client.keys.rotate(key.keyId);
  expect(await codeOf(key.secret)).toBe('token_rotated');
  await clock.advance(91 * 24 * 3600_000);
  expect(await codeOf(key.secret)).toBe('invalid_token');
});

test('each permission includes the ones before it; without it, a 403 names the missing scope and the actual permission', async () => {
  const { client } = service;
  const read = await client.keys.create({ name: 'r', permission: 'read' });
  const write = await client.keys.create({ name: 'w', permission: 'write' });
  const agent = { name: 'A', model: 'scripted/x' };
  const status = async (key: string, method: string, path: string, body?: unknown) =>
    (await send(service.url, method, path, { key, ...(body !== undefined && { body }) })).status;

  expect(await status(read.secret!, 'GET', '/agents')).toBe(200);
  expect(await status(read.secret!, 'POST', '/agents', agent)).toBe(403);
  expect(await status(write.secret!, 'POST', '/agents', agent)).toBe(201);
  expect(await status(write.secret!, 'GET', '/api_keys')).toBe(403);
  expect(await status(write.secret!, 'PUT', '/environments/production/secrets/X', {})).toBe(403);
  const problem = asProblem(await send(service.url, 'GET', '/api_keys', { key: read.secret! }));
  expect(problem).toMatchObject({
    code: 'insufficient_permission',
    detail: expect.stringMatching(/"keys:manage".*"admin".*"read"/),
  });
});

test('a lowered permission applies from the next request on', async () => {
  const key = await service.client.keys.create({ name: 'demoted', permission: 'admin' });
  expect((await send(service.url, 'GET', '/api_keys', { key: key.secret! })).status).toBe(200);
  await service.client.keys.update(key.keyId, { permission: 'read' });
  expect((await send(service.url, 'GET', '/api_keys', { key: key.secret! })).status).toBe(403);
});

test('a key may rotate and delete itself, and is refused from then on', async () => {
  const key = await service.client.keys.create({ name: 'self', permission: 'admin' });
  const rotated = await send(service.url, 'POST', `/api_keys/${key.keyId}/rotate`, { key: key.secret! });
  expect(rotated.status).toBe(200);
  expect(await codeOf(key.secret)).toBe('token_rotated');
  const secret = rotated.json.apiKey.secret;
  const gone = await send(service.url, 'DELETE', `/api_keys/${key.keyId}`, { key: secret });
  expect(gone.json).toEqual({ keyId: key.keyId, deleted: true });
  expect(await codeOf(secret)).toBe('token_revoked');
});

test('a deleted key is in no list and can’t be read', async () => {
  const key = await service.client.keys.create({ name: 'gone', permission: 'read' });
  await service.client.keys.delete(key.keyId);
  await expect(service.client.keys.get(key.keyId)).rejects.toThrow(NotFoundError);
  await expect(service.client.keys.rotate(key.keyId)).rejects.toThrow(NotFoundError);
  for await (const { keyId } of service.client.keys.list()) expect(keyId).not.toBe(key.keyId);
});

test('an empty change changes nothing', async () => {
  const key = await service.client.keys.create({ name: 'same', permission: 'read' });
  await clock.advance(1000);
  const { secret, ...known } = key;
  expect(secret).toBeDefined();
  expect(await service.client.keys.update(key.keyId, {})).toEqual(known);
});

test('lastUsedAt is accurate to a minute and only increases', async () => {
  const key = await service.client.keys.create({ name: 'used', permission: 'read' });
  const lastUsed = async () => (await service.client.keys.get(key.keyId)).lastUsedAt;
  const used = async (at: Date) => {
    await me(key.secret);
    while ((await lastUsed()) !== at.toISOString()) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  expect(await lastUsed()).toBeNull();
  const first = clock.now();
  await used(first);
  await clock.advance(59_000);
  await me(key.secret);
  expect(await lastUsed()).toBe(first.toISOString());
  await clock.advance(1_000);
  await used(clock.now());
});

test('pages are newest first, skip and repeat nothing while keys are created, and a cursor is valid only for its list', async () => {
  const names = Array.from({ length: 25 }, (_, n) => `page ${n}`);
  for (const name of names) await service.client.keys.create({ name, permission: 'read' });
  const seen: string[] = [];
  let page = await service.client.keys.list({ limit: 7 });
  while (true) {
    seen.push(...page.data.map(({ name }) => name));
    await service.client.keys.create({ name: 'meanwhile', permission: 'read' });
    if (!page.hasMore) break;
    page = (await page.nextPage())!;
  }
  expect(seen.filter((name) => name.startsWith('page')).toReversed()).toEqual(names);
  expect(seen).not.toContain('meanwhile');

  const { nextCursor } = await service.client.keys.list({ limit: 1 });
  for (const cursor of [
    'nonsense',
    `${nextCursor}x`,
    nextCursor.slice(1),
    Buffer.from('["1","agents","x"]').toString('base64url'),
  ]) {
    const answer = await send(service.url, 'GET', `/api_keys?cursor=${cursor}`, { key: service.adminKey });
    expect(asProblem(answer).code, cursor).toBe('invalid_cursor');
  }
  const foreign = await send(service.url, 'GET', `/agents?cursor=${nextCursor}`, { key: service.adminKey });
  expect(asProblem(foreign).code).toBe('invalid_cursor');
});

test('getMe describes the caller', async () => {
  const identity = await service.client.me();
  expect(identity).toMatchObject({ permission: 'admin', user: null, apiKey: { permission: 'admin' } });
  expect(identity.organization.organizationId).toMatch(/^org_/);
});

test('the look-up of a key is planned once, and simultaneous callers with different keys each get their own', async () => {
  const { client, database } = service;
  const made = await Promise.all(
    ['first', 'second', 'third'].map((name) => client.keys.create({ name, permission: 'read' })),
  );
  const db = createDb({ url: database.url, max: 1 });
  const { authenticate, close } = createAuthenticator({ db, shards: createShards(db), clock });
  const ask = (secret: string) => authenticate(`Bearer ${secret}`, '127.0.0.1');
  const unknown = newSecret(uuidOf('org', service.organizationId), newUuid());
  // The first one's old secret works as well, and costs nothing more.
  await client.keys.rotate(made[0]!.keyId, { gracePeriodSeconds: 60 });
  const callers = [...made, ...made].map(({ secret }) => secret!);
  for (let time = 0; time < 10; time += 1) {
    await ask(callers[0]!);
    const found = await Promise.allSettled([...callers, unknown].map(ask));
    expect(found.map((one) => (one.status === 'fulfilled' ? one.value.name : one.reason.code))).toEqual([
      ...['first', 'second', 'third', 'first', 'second', 'third'],
      'invalid_token',
    ]);
  }
  await close();
  const statements = await db.query<{ planned: number; uses: number }>(sql`
    select custom_plans::int as planned, (custom_plans + generic_plans)::int as uses
    from pg_prepared_statements where statement like ${'%from api_keys%'}`);
  expect(statements).toHaveLength(1);
  // PostgreSQL plans the first five uses of any statement.
  expect(statements[0]).toEqual({ planned: 5, uses: 50 });
  await db.close();
});
