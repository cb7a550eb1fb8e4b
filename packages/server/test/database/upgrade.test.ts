// A database filled by an earlier release is migrated, and nothing in it is lost.
//
// A fixture is the database that a release wrote, with rows in every table: `database-VERSION.json.gz` (0001 is from before the first
// release, and has its first migration only). `npm run fixture` writes the one of the coming release; it refuses to replace one.
import { hash } from 'node:crypto';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lastRelease } from '../../../../test/releases/last-release.ts';
import manifest from '../../package.json' with { type: 'json' };
import { createDb } from '../../src/db/db.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { readMigrations } from '../../src/db/schema/migration-files.ts';
import { dumpSchema } from '../../src/db/schema/schema-dump.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { fixtureMasterKey, type Populated, populate } from '../fixtures/populate.ts';
import { openBrowser } from '../support/browser.ts';
import { useProductionHashes } from '../support/cheap-hashes.ts';
import { dumpFixture, loadFixture, readFixture, writeFixture } from '../support/fixture.ts';
import { password } from '../support/people.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

useProductionHashes();

const directory = new URL('../fixtures/', import.meta.url);

if (process.env.SIGNALBOX_WRITE_FIXTURE) {
  // The coming release after 0.2.0-dev is 0.2.0.
  const [coming] = manifest.version.split('-');
  const database = await createTestDatabase();
  const fixture = await dumpFixture(database.url, await populate(database));
  await writeFixture(new URL(`database-${coming}.json.gz`, directory), fixture);
  await database.drop();
}

const files = (await readdir(directory)).filter((file) => file.endsWith('.json.gz'));
const log = { info() {}, warn() {} };

test('the databases of the first version and of the last release are among those that are upgraded', () => {
  expect(files).toEqual(expect.arrayContaining(['database-0001.json.gz', `database-${lastRelease.version}.json.gz`]));
});

test('a database with rows in every table can be written, and loaded again', async () => {
  const database = await createTestDatabase();
  const fixture = await dumpFixture(database.url, await populate(database));
  await database.drop();
  const copy = await createTestDatabase();
  await loadFixture(fixture, copy.url);
  const hashes = ({ tables }: Pick<typeof fixture, 'tables'>) =>
    tables.map(([name, rows]) => [name, hash('sha256', rows.toSorted().join())]);
  expect(hashes(await dumpFixture(copy.url, fixture))).toEqual(hashes(fixture));
  await copy.drop();
});

describe.each(files)('%s', (file) => {
  let database: TestDatabase;
  let fixture: Awaited<ReturnType<typeof readFixture>>;
  beforeAll(async () => {
    fixture = await readFixture(new URL(file, directory));
    watchSecret(fixture.adminKey);
    database = await createTestDatabase({ empty: true });
    const before = await firstMigrations(fixture.migrations.length);
    await migrate(database.url, log, { directory: before });
    await loadFixture(fixture, database.url);
    await rm(before, { recursive: true });
    await migrate(database.url, log);
  });
  afterAll(() => database.drop());

  test('was created by migrations that have not changed since', async () => {
    const now = (await readMigrations()).map(({ sha256 }) => sha256);
    expect(now.slice(0, fixture.migrations.length)).toEqual(fixture.migrations);
  });

  test('has the same schema after the migration as a new database', async () => {
    const empty = await createTestDatabase();
    const [ofFixture, ofEmpty] = [createDb({ url: database.url }), createDb({ url: empty.url })];
    expect(await dumpSchema(ofFixture)).toBe(await dumpSchema(ofEmpty));
    await Promise.all([ofFixture.close(), ofEmpty.close()]);
    await empty.drop();
  });

  test('returns the same responses, decrypts its secrets, and continues the work that was waiting', async () => {
    const config = { masterKeys: [fixtureMasterKey] };
    const reader = await startTestService({ database, config: { ...config, roles: new Set(['api']) } });
    // Without a delivery node, its subscriptions would be blocked.
    const other = newUuid();
    await reader.db.execute(sql`
      insert into nodes (node_id, lease_expires_at, delivers) values (${other}, now() + interval '1 hour', true)`);
    const headers = { authorization: `Bearer ${fixture.adminKey}` };
    expect(Object.keys(fixture.answers).length).toBeGreaterThan(30);
    for (const [path, before] of Object.entries(fixture.answers)) {
      const response = await reader.fetch(`/api/v1${path}`, { headers });
      // A newer release may return more fields.
      expect(await response.json(), path).toMatchObject(before as object);
    }
    await reader.db.execute(sql`delete from nodes where node_id = ${other}`);
    await reader.stop();

    const service = await startTestService({ database, config });
    const { client } = service;
    const signedIn = await openBrowser(service).post('/sign_in', { email: 'mara@example.com', password });
    expect(signedIn.status, signedIn.text).toBe(200);
    expect(await client.events.verify()).toMatchObject({ ok: true });
    expect(await client.webhookSubscriptions.test('production')).toMatchObject({ status: 200 });
    const [approval] = (await client.approvals.list({ status: 'pending', environment: 'production' })).data;
    await client.approvals.deny(approval!.operationId);
    // The message that was queued behind it runs its turn.
    await expect.poll(async () => (await client.sessions.get(approval!.sessionId)).turn).toBe(2);
    if (fixture.keys && fixture.open) await continueWith(service, fixture.keys, fixture.open);
    expect(await client.events.verify()).toMatchObject({ ok: true });
    await service.stop();
  });
});

async function continueWith(
  service: TestService,
  keys: NonNullable<Populated['keys']>,
  open: NonNullable<Populated['open']>,
): Promise<void> {
  const client = service.clientWith(service.adminKey);
  const said = async (sessionId: string) =>
    (await client.sessions.messages(sessionId, { limit: 100 })).data.flatMap(({ content }) =>
      content.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
    );
  // The keys do what they could do.
  expect(await service.clientWith(keys.limited).me()).toMatchObject({ permission: 'read' });
  expect(await service.clientWith(keys.rotated).me()).toMatchObject({ permission: 'read' });
  expect(await service.clientWith(keys.scoped).sessions.get(open.parked)).toMatchObject({ sessionId: open.parked });
  await expect(service.clientWith(keys.scoped).agents.list()).rejects.toMatchObject({ status: 403 });

  // The second approver's decision is the last one that was missing.
  const { sessionId } = await client.approvals.get(open.halfApproved);
  await client.approvals.approve(open.halfApproved);
  await expect.poll(async () => (await client.sessions.get(sessionId)).waitingFor?.type).toBe('toolResult');
  await client.sessions.sendToolResult(sessionId, {
    toolCallId: open.halfApproved.replace('op_', 'call_'),
    output: 'paid',
  });
  await expect.poll(() => said(sessionId)).toContain('Both agreed.');

  // A conversation continues from its summary, and so does a fork of it.
  await client.sessions.sendMessage(open.compacted, { content: 'One more thing' });
  await expect.poll(async () => (await client.sessions.get(open.compacted)).status).toBe('idle');
  const fork = await client.sessions.fork(open.compacted, { atTurn: 2 });
  await client.sessions.sendMessage(fork.sessionId, { content: 'Another way' });
  await expect.poll(async () => (await said(fork.sessionId)).slice(-2)).toEqual(['Another way', 'I see.']);
  expect(await said(open.compacted)).not.toContain('Another way');
  expect(await new Response(await client.files.content(open.fileId)).text()).toBe('kept');
  const { token } = await client.sessions.createToken(open.compacted, { scopes: ['read'] });
  watchSecret(token!);
  const withToken = await service.fetch(`/api/v1/sessions/${open.compacted}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(withToken.status).toBe(200);

  // Its model is still down; depending on the age of the fixture it still waits, or its turn has failed.
  await client.sessions.cancel(open.parked);
  await expect.poll(async () => (await client.sessions.get(open.parked)).status).toBe('cancelled');
}

/** A directory with only the first ones. */
async function firstMigrations(count: number): Promise<string> {
  const to = await mkdtemp(join(tmpdir(), 'signalbox-migrations-'));
  const from = new URL('../../src/db/migrations/', import.meta.url);
  const names = (await readdir(from)).toSorted().slice(0, count);
  for (const name of names) await cp(new URL(name, from), join(to, name));
  return to;
}
