// Rotation with a grace period: the old secret and the new one both work until its end.
import { NotFoundError } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const HOUR_MS = 3600_000;
// The real time, like that of the database.
const clock = createManualClock(new Date());
let service: TestService;
/** On the same database. Its clock is an hour fast. */
let other: TestService;
beforeAll(async () => {
  service = await startTestService({ clock });
  other = await startTestService({
    clock: createManualClock(new Date(Date.now() + HOUR_MS)),
    database: service.database,
  });
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

const keys = () => service.client.keys;
const create = () => keys().create({ name: 'k', permission: 'read' });

/** `ok` or the code of the refusal, on each node. */
async function outcomes(secret: string | undefined): Promise<string[]> {
  const answers = await Promise.all([service, other].map(({ url }) => send(url, 'GET', '/me', { key: secret! })));
  return answers.map((answer) => (answer.status === 200 ? 'ok' : asProblem(answer).code));
}

/** As if the grace period had passed: the database decides when it ends. */
async function endGracePeriod(keyId: string): Promise<void> {
  await service.db.execute(sql`
    update api_keys set old_secret_expires_at = now()
    where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', keyId)}`);
}

test('the old secret works on every node until its time by the clock of the database, and reads show it until then', async () => {
  const first = await create();
  expect(first.expiringSecret).toBeNull();
  const before = Date.now();
  const second = await keys().rotate(first.keyId, { gracePeriodSeconds: 1800 });
  const { preview, expiresAt } = second.expiringSecret!;
  expect(preview).toBe(first.secretPreview);
  expect(Date.parse(expiresAt)).toBeGreaterThanOrEqual(before + 1_799_000);
  expect(Date.parse(expiresAt)).toBeLessThanOrEqual(Date.now() + 1_801_000);
  expect(second.secretPreview).toBe(`sbk_…${second.secret!.slice(-4)}`);
  const { secret, ...shown } = second;
  expect(secret).toBeDefined();
  expect(await keys().get(first.keyId)).toEqual(shown);
  expect((await keys().list()).data.find(({ keyId }) => keyId === first.keyId)).toEqual(shown);
  expect((await service.clientWith(first.secret!).me()).apiKey).toMatchObject({ keyId: first.keyId });
  expect([await outcomes(first.secret), await outcomes(second.secret)]).toEqual([
    ['ok', 'ok'],
    ['ok', 'ok'],
  ]);

  await endGracePeriod(first.keyId);
  expect(await outcomes(first.secret)).toEqual(['token_rotated', 'token_rotated']);
  expect(await outcomes(second.secret)).toEqual(['ok', 'ok']);
  expect((await keys().get(first.keyId)).expiringSecret).toBeNull();
});

test('without a grace period the old secret is refused at once', async () => {
  const bodies = [undefined, {}, { gracePeriodSeconds: 0 }];
  for (const body of bodies) {
    const key = await create();
    const rotated = await send(service.url, 'POST', `/api_keys/${key.keyId}/rotate`, {
      key: service.adminKey,
      ...(body && { body }),
    });
    expect([rotated.status, rotated.json.apiKey.expiringSecret]).toEqual([200, null]);
    expect(await outcomes(key.secret)).toEqual(['token_rotated', 'token_rotated']);
  }
});

test.each([-1, 604_801, 1.5, '60'])('a grace period of %j is refused', async (gracePeriodSeconds) => {
  const { keyId, secret } = await create();
  const path = `/api_keys/${keyId}/rotate`;
  const refused = await send(service.url, 'POST', path, { key: service.adminKey, body: { gracePeriodSeconds } });
  expect(asProblem(refused)).toMatchObject({ status: 400, errors: [{ path: 'gracePeriodSeconds' }] });
  expect(await outcomes(secret)).toEqual(['ok', 'ok']);
});

test.each([
  ['with another grace period', 60],
  ['without one', 0],
])('a key has two secrets at most: a second rotation, %s, ends the oldest', async (_, gracePeriodSeconds) => {
  const first = await create();
  const second = await keys().rotate(first.keyId, { gracePeriodSeconds: 3600 });
  const third = await keys().rotate(first.keyId, { gracePeriodSeconds });
  expect(await outcomes(first.secret)).toEqual(['token_rotated', 'token_rotated']);
  expect((await outcomes(second.secret))[0]).toBe(gracePeriodSeconds > 0 ? 'ok' : 'token_rotated');
  expect(await outcomes(third.secret)).toEqual(['ok', 'ok']);
  expect(third.expiringSecret?.preview).toBe(gracePeriodSeconds > 0 ? second.secretPreview : undefined);
});

test('the old secret can be ended early, once, and the event log records both', async () => {
  const first = await create();
  const second = await keys().rotate(first.keyId, { gracePeriodSeconds: 604_800 });
  const { secret, ...shown } = second;
  await clock.advance(1000);
  const ended = await keys().deleteOldSecret(first.keyId);
  expect(ended).toEqual({ ...shown, expiringSecret: null, updatedAt: clock.now().toISOString() });
  const { updatedAt } = ended;
  expect(await outcomes(first.secret)).toEqual(['token_rotated', 'token_rotated']);
  expect(await outcomes(secret)).toEqual(['ok', 'ok']);
  await clock.advance(1000);
  expect(await keys().deleteOldSecret(first.keyId)).toMatchObject({ expiringSecret: null, updatedAt });

  const events = (await service.client.events.list({ limit: 100 })).data.filter(
    ({ resource }) => resource.id === first.keyId,
  );
  expect(events.map(({ type, changes }) => [type, changes?.expiringSecret])).toEqual([
    ['api_key.old_secret_deleted', [second.expiringSecret, null]],
    ['api_key.rotated', [null, second.expiringSecret]],
    ['api_key.created', undefined],
  ]);
  expect(JSON.stringify(events)).not.toContain(first.secret!);
  await expect(keys().deleteOldSecret('key_01k9xq3v7gf3pbt8zn5e6m2r4c')).rejects.toThrow(NotFoundError);
});

test('the code of an old secret is kept for 90 days after its end, not after the rotation', async () => {
  const first = await create();
  await keys().rotate(first.keyId, { gracePeriodSeconds: 604_800 });
  await endGracePeriod(first.keyId);
  const fast = await startTestService({
    clock: createManualClock(new Date(Date.now() + 96 * 24 * HOUR_MS)),
    database: service.database,
  });
  const codeAt = async () => asProblem(await send(fast.url, 'GET', '/me', { key: first.secret! })).code;
  expect(await codeAt()).toBe('token_rotated');
  await fast.stop();
});

test('deleting a key ends both secrets', async () => {
  const first = await create();
  const second = await keys().rotate(first.keyId, { gracePeriodSeconds: 3600 });
  await keys().delete(first.keyId);
  for (const { secret } of [first, second]) expect(await outcomes(secret)).toEqual(['token_revoked', 'token_revoked']);
});

test('a key that is limited to environments may end its own old secret, and no other', async () => {
  const [mine, theirs] = await Promise.all(
    ['mine', 'theirs'].map((name) => keys().create({ name, permission: 'admin', environments: ['staging'] })),
  );
  const as = (secret: string, method: string, path: string, body?: unknown) =>
    send(service.url, method, path, { key: secret, ...(body !== undefined && { body }) });
  const grace = { gracePeriodSeconds: 3600 };
  const rotated = await as(mine!.secret!, 'POST', `/api_keys/${mine!.keyId}/rotate`, grace);
  expect(rotated.status).toBe(200);
  await keys().rotate(theirs!.keyId, grace);
  const { secret } = rotated.json.apiKey;
  for (const [method, path] of [
    ['POST', `/api_keys/${theirs!.keyId}/rotate`],
    ['DELETE', `/api_keys/${theirs!.keyId}/old_secret`],
  ] as const) {
    expect((await as(secret, method, path)).status, path).toBe(403);
  }
  expect((await as(secret, 'PATCH', `/api_keys/${mine!.keyId}`, { environments: null })).status).toBe(403);
  expect((await as(mine!.secret!, 'DELETE', `/api_keys/${mine!.keyId}/old_secret`)).status).toBe(200);
  expect(await outcomes(mine!.secret)).toEqual(['token_rotated', 'token_rotated']);
  expect(await outcomes(theirs!.secret)).toEqual(['ok', 'ok']);
});

test('a stream that was opened with the old secret ends when it does: at once where it was ended, else within 30 seconds', async () => {
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const streams = await Promise.all(
    ['ended', 'expired', 'kept'].map(async (name) => {
      const key = await keys().create({ name, permission: 'read' });
      const response = await fetch(`${service.url}/api/v1/sessions/${sessionId}/stream`, {
        headers: { authorization: `Bearer ${key.secret}` },
      });
      expect(response.status).toBe(200);
      const stream = { ...key, isOver: false, over: Promise.resolve() };
      const end = () => {
        stream.isOver = true;
      };
      stream.over = response.text().then(end, end);
      await keys().rotate(key.keyId, { gracePeriodSeconds: 3600 });
      return stream;
    }),
  );
  const [ended, expired, kept] = streams as [(typeof streams)[0], (typeof streams)[0], (typeof streams)[0]];
  await keys().deleteOldSecret(ended.keyId);
  await ended.over;
  expect([expired.isOver, kept.isOver]).toEqual([false, false]);
  await endGracePeriod(expired.keyId);
  await clock.advance(30_000);
  await expired.over;
  expect(kept.isOver).toBe(false);
  await keys().delete(kept.keyId);
  await kept.over;
});
