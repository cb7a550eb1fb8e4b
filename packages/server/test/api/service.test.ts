// The whole service in one process: what its start and stop guarantee.
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { forgetOtherNodes } from '../../src/node/claims/node-lease.ts';
import { createKeyOnHost, OperatorError } from '../../src/operator/operator.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { createSetupToken } from '../../src/people/invitations.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { startTestService, watchSecret } from '../support/service.ts';

let directory: string;
let adminKeyFile: string;
beforeEach(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  adminKeyFile = join(directory, 'admin.key');
});
afterEach(() => fs.rm(directory, { recursive: true }));

test('a new installation has an organization with two environments, and accepts the first key', async () => {
  const { client, fetch, url } = await startTestService();
  const me = await client.me();
  expect(me).toMatchObject({
    permission: 'admin',
    apiKey: { name: 'Test' },
    organization: { name: 'My organization' },
  });
  expect((await client.environments.list()).data.map(({ name }) => name).toSorted()).toEqual(['production', 'staging']);
  expect(await (await fetch('/readyz')).json()).toEqual({ status: 'ready' });
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
});

test('a key created on the host is in the event log, with the system as its actor', async () => {
  const { client } = await startTestService();
  const { data } = await client.events.list();
  expect(data).toMatchObject([{ type: 'api_key.created', actor: { type: 'system', id: null }, sequence: 1 }]);
});

test('two nodes on one database create one organization and see the same data', async () => {
  const database = await createTestDatabase();
  const [one, two] = await Promise.all([startTestService({ database }), startTestService({ database })]);
  expect(one.organizationId).toBe(two.organizationId);
  const { keyId } = await one.client.keys.create({ name: 'shared', permission: 'read' });
  expect((await two.client.keys.get(keyId)).name).toBe('shared');
  await Promise.all([one.stop(), two.stop()]);
  await database.drop();
});

test('every log line names its node, and a request’s line has the id that a load balancer gave it', async () => {
  const database = await createTestDatabase();
  const [one, two] = await Promise.all([startTestService({ database }), startTestService({ database })]);
  const ids = ['3f2c-a1.b:c', 'two words', 'x'.repeat(129)];
  for (const id of ids) await one.fetch('/api/v1/me', { headers: { 'X-Request-Id': id } });
  await Promise.all([one.stop(), two.stop()]);
  const [linesOfOne, linesOfTwo] = [one, two].map(({ logLines }) => logLines.map((line) => JSON.parse(line)));
  const [nodesOfOne, nodesOfTwo] = [linesOfOne, linesOfTwo].map((lines) => new Set(lines!.map(({ nodeId }) => nodeId)));
  expect([nodesOfOne!.size, nodesOfTwo!.size]).toEqual([1, 1]);
  expect(nodesOfOne).not.toEqual(nodesOfTwo);
  const requests = linesOfOne!.filter(({ msg, route }) => msg === 'request' && route === '/api/v1/me');
  expect(requests.map(({ callerRequestId }) => callerRequestId)).toEqual(['3f2c-a1.b:c', undefined, undefined]);
  await database.drop();
});

test('a setup link that is requested on the host invalidates all others', async () => {
  const { db, setupLink } = await startTestService();
  expect(setupLink).toBeDefined();
  const [organization] = await db.query<{ id: string }>(sql`select organization_id as id from organizations`);
  watchSecret((await createSetupToken({ db, organizationId: organization!.id }, new Date(), { voidsOlder: true }))!);
  expect(await db.query(sql`select 1 from invitations where is_setup`)).toHaveLength(1);
});

test('a service that stops completes its requests, and accepts no more', async () => {
  const service = await startTestService();
  const { keyId } = await service.client.keys.create({ name: 'last', permission: 'read' });
  const database = service.database;
  const second = await startTestService({ database });
  await second.stop();
  expect((await service.client.keys.get(keyId)).name).toBe('last');
  await service.stop();
  await expect(fetch(`${service.url}/healthz`)).rejects.toThrow();
});

test('events are sequenced without being read, and expired responses are deleted', async () => {
  const clock = createManualClock();
  const { client, db, fetch } = await startTestService({ clock });
  await fetch('/api/v1/environments', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'one' },
    body: '{"name":"dev"}',
  });
  const count = async (table: 'events_pending' | 'idempotency_records') =>
    (
      await db.query(
        table === 'events_pending' ? sql`select 1 from events_pending` : sql`select 1 from idempotency_records`,
      )
    ).length;
  expect(await count('idempotency_records')).toBe(1);
  await clock.advance(24 * 3600 * 1000);
  await expect.poll(() => count('idempotency_records')).toBe(0);
  await expect.poll(() => count('events_pending')).toBe(0);
  expect((await client.events.list()).data).not.toHaveLength(0);
});

test('the admin key file is written only on the first start, readable only by its owner', async () => {
  const database = await createTestDatabase();
  const config = { adminKeyFile };
  // Before any key: those that startTestService creates come later.
  const first = await startTestService({ database, config });
  const text = await fs.readFile(adminKeyFile, 'utf8');
  watchSecret(text.trim());
  expect((await fs.stat(adminKeyFile)).mode & 0o777).toBe(0o600);
  expect((await first.clientWith(text.trim()).me()).permission).toBe('admin');
  await first.stop();

  await (await startTestService({ database, config })).stop();
  expect(await fs.readFile(adminKeyFile, 'utf8')).toBe(text);

  await fs.rm(adminKeyFile);
  const third = await startTestService({ database, config });
  await expect(fs.stat(adminKeyFile)).rejects.toThrow('ENOENT');
  expect(third.logLines.join()).toContain('not the first start');
  await third.stop();
  await database.drop();
});

test('an admin key file of another installation is left unchanged, and reported', async () => {
  await fs.writeFile(adminKeyFile, 'something else\n');
  const service = await startTestService({ config: { adminKeyFile } });
  expect(await fs.readFile(adminKeyFile, 'utf8')).toBe('something else\n');
  expect(service.logLines.join()).toContain('it is left unchanged');
  expect((await service.client.keys.list()).data).toHaveLength(1);
});

test('an admin key file that a crash left before its key was committed is replaced', async () => {
  const database = await createTestDatabase();
  await (await startTestService({ database, config: { adminKeyFile } })).stop();
  const dead = await fs.readFile(adminKeyFile, 'utf8');
  watchSecret(dead.trim());
  const { db, stop } = await startTestService({ database });
  await db.execute(sql`delete from api_keys`);
  await stop();
  const again = await startTestService({ database, config: { adminKeyFile } });
  const text = (await fs.readFile(adminKeyFile, 'utf8')).trim();
  watchSecret(text);
  expect(text).not.toBe(dead.trim());
  expect((await again.clientWith(text).me()).permission).toBe('admin');
  await again.stop();
  await database.drop();
});

test('an admin key file that can’t be written stops the start, and no key is created', async () => {
  const database = await createTestDatabase();
  const path = join(directory, 'missing', 'admin.key');
  await expect(startTestService({ database, config: { adminKeyFile: path } })).rejects.toThrow(
    `The admin key file ${path} can't be written: its directory does not exist.`,
  );
  const { client, stop } = await startTestService({ database });
  expect((await client.keys.list()).data).toHaveLength(1);
  await stop();
  await database.drop();
});

test('keys create names every invalid option, by the rules of the API', async () => {
  const config = readConfig({}, { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
  const refused = async (input: Parameters<typeof createKeyOnHost>[1]) => {
    const error = await createKeyOnHost(config, input).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OperatorError);
    return (error as Error).message.split('\n').map((line) => line.split(' ')[0]);
  };
  expect(await refused({})).toEqual(['--name', '--permission']);
  expect(await refused({ name: '', permission: 'root' })).toEqual(['--name', '--permission']);
  expect(await refused({ name: 'a', permission: 'read', expiresAt: 'soon' })).toEqual(['--expires-at']);
  expect(await refused({ name: 'a', permission: 'read', expiresAt: '2001-01-01T00:00:00Z' })).toEqual(['--expires-at']);
});

test('keys create limits a key to existing environments and valid addresses', async () => {
  const { database } = await startTestService();
  const config = readConfig({}, { DATABASE_URL: database.url });
  const create = (more: object) => createKeyOnHost(config, { name: 'a', permission: 'read', ...more });
  const { apiKey } = await create({ environments: ['staging'], allowedIps: ['10.0.0.0/8'] });
  expect(apiKey).toMatchObject({ environments: ['staging'], allowedIps: ['10.0.0.0/8'] });
  await expect(create({ allowedIps: ['10.0.0.1/8'] })).rejects.toThrow(
    /^--allowed-ip "10.0.0.1\/8" is not the first address/,
  );
  await expect(create({ environments: ['Staging'] })).rejects.toThrow(/^--environment /);
  await expect(create({ environments: ['stagign'] })).rejects.toThrow('There is no environment "stagign"');
  const scoped = { permission: undefined, scopes: ['approvals:decide', 'sessions:read'] };
  expect((await create(scoped)).apiKey).toMatchObject({
    permission: null,
    scopes: ['sessions:read', 'approvals:decide'],
  });
  await expect(create({ scopes: scoped.scopes })).rejects.toThrow(/^--scopes must not be given together/);
  await expect(create({ ...scoped, scopes: ['sessions'] })).rejects.toThrow(/^--scopes must be one of/);
  await expect(create({ agents: ['support'] })).rejects.toThrow(/^--agents /);
  await expect(create({ agents: ['agt_01k9xq3v7gf3pbt8zn5e6m2r4c'] })).rejects.toThrow('There is no agent agt_01k9x');
});

test('keys create requires the organization if there are several', async () => {
  const { db, database, organizationId } = await startTestService();
  const { name } = await db.transaction((tx) => createOrganization(tx, 'Second', new Date()));
  const config = readConfig({}, { DATABASE_URL: database.url });
  const key = { name: 'a', permission: 'read' };
  await expect(createKeyOnHost(config, key)).rejects.toThrow(name);
  await expect(createKeyOnHost(config, { ...key, organization: 'org_0' })).rejects.toThrow('no such organization');
  const made = await createKeyOnHost(config, { ...key, organization: organizationId });
  expect(made.organizationId).toBe(organizationId);
});

test('keys create reports a database that no service has set up', async () => {
  const database = await createTestDatabase({ empty: true });
  const config = readConfig({}, { DATABASE_URL: database.url });
  await expect(createKeyOnHost(config, { name: 'a', permission: 'read' })).rejects.toThrow('Start the service once');
  await database.drop();
});

test('a node that alone uses its database forgets dead nodes without waiting for their leases', async () => {
  const { db } = await startTestService({ config: { roles: new Set(['api']) } });
  await db.execute(
    sql`insert into nodes (node_id, lease_expires_at) values (gen_random_uuid(), now() + interval '1 hour')`,
  );
  await forgetOtherNodes(db);
  expect(await db.query(sql`select from nodes`)).toEqual([]);
});

test('a worker keeps its turn while a service that alone uses its database restarts', async () => {
  const { client, db } = await startTestService();
  const { agentId } = await client.agents.create({ name: 'Own', model: { provider: 'worker', queue: 'restart' } });
  await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const { workerTurnId } = (await client.workers.claim({ queue: 'restart' }))!;
  await forgetOtherNodes(db);
  const [lease] = await db.query(sql`select from nodes where node_id = ${uuidOf('wtn', workerTurnId)}`);
  expect(lease).toBeDefined();
});

test('each role can run on its own node: api, runtime, delivery', async () => {
  const database = await createTestDatabase();
  const node = (role: 'api' | 'runtime' | 'delivery') =>
    startTestService({ database, config: { roles: new Set([role]) } });
  const [api, runtime, delivery] = await Promise.all([node('api'), node('runtime'), node('delivery')]);
  expect([runtime.url, delivery.url]).toEqual(['', '']);
  const received = Promise.withResolvers<void>();
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.end('{}'));
    received.resolve();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as { port: number };
  await api.client.webhookSubscriptions.create({ environment: 'production', url: `http://127.0.0.1:${port}/` });
  const model = { provider: 'scripted' as const, model: 'test', settings: { script: [{ text: 'hello' }] } };
  const { agentId } = await api.client.agents.create({ name: 'a', model });
  const { sessionId } = await api.client.sessions.open({
    agentId,
    environment: 'production',
    input: 'go',
    closeOnIdle: true,
  });
  const types: string[] = [];
  for await (const { chunks } of api.client.sessions.stream(sessionId)) types.push(...chunks.map(({ type }) => type));
  expect(types).toContain('message.chunk');
  await received.promise;
  for (const one of [delivery, runtime, api]) await one.stop();
  receiver.close();
  await database.drop();
});
