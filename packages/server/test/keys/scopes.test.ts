// Keys with scopes of their own: what each can do, and that no key gives away more than it has.
import type { CreateKey } from '@signalbox/client';
import { type Route, routes, type Scope, scopeFacts, scopes, scopesOf, scopesOfPermission } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const REFUSED = { status: 403, code: 'insufficient_permission' };
const create = async (fields: Record<string, unknown>, by = service.adminKey) =>
  service.clientWith(by).keys.create({ name: 'k', ...fields } as CreateKey);
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

describe('a key with one scope', () => {
  test.each(scopes)(
    '%s can use the routes that need nothing else, and is refused by all others, which name what is missing',
    async (scope) => {
      const { secret } = await create({ scopes: [scope] });
      for (const [name, route] of Object.entries<Route>(routes)) {
        // No request has an effect: one that is refused for its form has passed the check.
        const path = `${route.path.replaceAll(/\{\w+\}/g, 'none')}?limit=none`;
        const response = await send(service.url, route.method, path, {
          key: secret!,
          ...(route.method !== 'GET' && { body: { none: 1 } }),
        });
        const missing = scopesOf(route).find((needed) => needed !== scope);
        if (missing === undefined) {
          expect([name, response.json.code]).not.toEqual([name, 'insufficient_permission']);
        } else {
          expect([name, response.json]).toMatchObject([
            name,
            { ...REFUSED, detail: expect.stringContaining(`"${missing}"`) },
          ]);
        }
      }
    },
  );
});

test('a key shows its scopes: those that it was given, or those of its permission', async () => {
  const given = await create({ scopes: ['approvals:decide', 'sessions:read'] });
  expect(given).toMatchObject({ permission: null, scopes: ['sessions:read', 'approvals:decide'], agents: null });
  expect(await service.client.keys.get(given.keyId)).toMatchObject({ permission: null, scopes: given.scopes });
  expect(await service.clientWith(given.secret!).me()).toMatchObject({
    permission: null,
    scopes: given.scopes,
    apiKey: { keyId: given.keyId, scopes: given.scopes },
  });
  const named = await create({ permission: 'read' });
  expect(named).toMatchObject({ permission: 'read', scopes: [...scopesOfPermission.read] });
  const listed = (await service.client.keys.list({ limit: 2 })).data;
  expect(listed.map(({ scopes }) => scopes)).toEqual([named.scopes, given.scopes]);
});

test('a key gets a permission or scopes, never both or neither', async () => {
  const invalid = (fields: object) =>
    expect(create(fields as Record<string, unknown>)).rejects.toMatchObject({ code: 'invalid_request' });
  await invalid({});
  await invalid({ permission: 'read', scopes: ['agents:read'] });
  await invalid({ scopes: [] });
  await invalid({ scopes: ['agents:read', 'agents:read'] });
  await invalid({ scopes: ['agents:admin'] });
  const { keyId } = await create({ permission: 'read' });
  const both = service.client.keys.update(keyId, { permission: 'read', scopes: ['agents:read'] } as object);
  await expect(both).rejects.toMatchObject({ code: 'invalid_request' });
});

test('a permission is replaced by scopes and scopes by a permission, from the next request on, and the event log has both', async () => {
  const { keyId, secret } = await create({ permission: 'write' });
  const client = service.clientWith(secret!);
  await client.agents.list();
  expect(await service.client.keys.update(keyId, { scopes: ['events:read'] })).toMatchObject({
    permission: null,
    scopes: ['events:read'],
  });
  await expect(client.agents.list()).rejects.toMatchObject(REFUSED);
  await client.events.list({ limit: 1 });
  expect(await service.client.keys.update(keyId, { permission: 'read' })).toMatchObject({ permission: 'read' });
  await client.agents.list();
  const { data } = await service.client.events.list({ limit: 20 });
  const ofKey = data.filter(({ resource, type }) => resource?.id === keyId && type.startsWith('api_key.'));
  expect(ofKey.map(({ changes }) => changes)).toEqual([
    { permission: [null, 'read'], scopes: [['events:read'], null] },
    { permission: ['write', null], scopes: [null, ['events:read']] },
    { name: [null, 'k'], permission: [null, 'write'] },
  ]);
});

test('a key that was stored before there were scopes keeps what its permission allows', async () => {
  const { keyId, secret } = await create({ permission: 'write' });
  const [row] = await service.db.query(sql`
    select permission, scopes, agents from api_keys
    where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', keyId)}`);
  expect(row).toEqual({ permission: 'write', scopes: null, agents: null });
  expect((await service.clientWith(secret!).me()).scopes).toEqual([...scopesOfPermission.write]);
});

describe('a key that manages keys', () => {
  const own: Scope[] = ['sessions:read', 'agents:read', 'keys:manage'];
  let manager: { keyId: string; secret?: string };
  beforeAll(async () => {
    manager = await create({ scopes: own });
  });

  test('gives a new key any of its own scopes and no other, nor a permission that has another', async () => {
    for (const scope of scopes) {
      const made = create({ scopes: [scope] }, manager.secret);
      if (own.includes(scope)) expect((await made).scopes).toEqual([scope]);
      else await expect(made).rejects.toMatchObject({ ...REFUSED, detail: expect.stringContaining(`"${scope}"`) });
    }
    for (const permission of ['read', 'write', 'admin']) {
      await expect(create({ permission }, manager.secret)).rejects.toMatchObject(REFUSED);
    }
  });

  test('can neither widen a key, itself included, nor change or rotate one that can do more than itself', async () => {
    const { keys } = service.clientWith(manager.secret!);
    const small = await create({ scopes: ['agents:read'] }, manager.secret);
    await expect(keys.update(small.keyId, { scopes: ['agents:write'] })).rejects.toMatchObject(REFUSED);
    await expect(keys.update(small.keyId, { permission: 'admin' })).rejects.toMatchObject(REFUSED);
    await expect(keys.update(manager.keyId, { permission: 'admin' })).rejects.toMatchObject(REFUSED);
    const large = await create({ permission: 'admin' });
    await expect(keys.update(large.keyId, { scopes: ['agents:read'] })).rejects.toMatchObject(REFUSED);
    await expect(keys.update(large.keyId, { name: 'renamed' })).rejects.toMatchObject(REFUSED);
    await expect(keys.rotate(large.keyId)).rejects.toMatchObject(REFUSED);
    expect(await service.client.keys.get(large.keyId)).toMatchObject({ name: 'k', permission: 'admin' });
    expect((await service.clientWith(large.secret!).me()).permission).toBe('admin');

    await keys.update(small.keyId, { scopes: ['sessions:read'], name: 'changed' });
    await keys.rotate(small.keyId);
    const renewed = await keys.rotate(manager.keyId);
    manager = renewed;
    await service.clientWith(renewed.secret!).keys.delete(large.keyId);
    await expect(service.clientWith(large.secret!).me()).rejects.toMatchObject({ code: 'token_revoked' });
  });

  test('gives no key other addresses or a longer life than it has', async () => {
    const bound = await create({ permission: 'admin', allowedIps: ['127.0.0.0/8', '::1'], expiresAt: inDays(2) });
    const within = { permission: 'read', allowedIps: ['127.0.0.1'], expiresAt: inDays(1) };
    const made = await create(within, bound.secret);
    expect(made).toMatchObject({ allowedIps: ['127.0.0.1'] });
    for (const beyond of [
      { allowedIps: null },
      { allowedIps: ['127.0.0.1', '10.0.0.1'] },
      { allowedIps: ['0.0.0.0/0'] },
      { expiresAt: null },
      { expiresAt: inDays(3) },
    ]) {
      await expect(create({ ...within, ...beyond }, bound.secret)).rejects.toMatchObject(REFUSED);
    }
    const { keys } = service.clientWith(bound.secret!);
    await expect(keys.update(made.keyId, { allowedIps: null })).rejects.toMatchObject(REFUSED);
    await expect(keys.update(bound.keyId, { allowedIps: null })).rejects.toMatchObject(REFUSED);
    const free = await create({ permission: 'read' });
    await expect(keys.rotate(free.keyId)).rejects.toMatchObject(REFUSED);
    await keys.rotate(bound.keyId);
  });

  test('an admin key without limits gives every permission and every scope', async () => {
    for (const permission of ['read', 'write', 'admin']) await create({ permission });
    expect((await create({ scopes })).scopes).toEqual(Object.keys(scopeFacts));
  });
});
