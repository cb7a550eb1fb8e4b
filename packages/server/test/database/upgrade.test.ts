// A database filled by an earlier release is migrated, and nothing in it is lost.
//
// A fixture is the database that an earlier version wrote, with rows in every table: `database-NNNN.json.gz`, by the number of the
// last migration that it has. `npm run fixture` writes the one of the current version before a release; it refuses to replace one.
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDb } from '../../src/db/db.ts';
import { migrate } from '../../src/db/migrate.ts';
import { readMigrations } from '../../src/db/migration-files.ts';
import { dumpSchema } from '../../src/db/schema-dump.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { fixtureMasterKey, populate } from '../fixtures/populate.ts';
import { openBrowser } from '../support/browser.ts';
import { loadFixture, readFixture, writeFixture } from '../support/fixture.ts';
import { password } from '../support/people.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestService, watchSecret } from '../support/service.ts';

const directory = new URL('../fixtures/', import.meta.url);

if (process.env.SIGNALBOX_WRITE_FIXTURE) {
  const version = String((await readMigrations()).length).padStart(4, '0');
  const database = await createTestDatabase();
  await writeFixture(new URL(`database-${version}.json.gz`, directory), database.url, await populate(database));
  await database.drop();
}

const files = (await readdir(directory)).filter((file) => file.endsWith('.json.gz'));
const log = { info() {}, warn() {} };

test('the database of the first version is among those that are upgraded', () => {
  expect(files).toContain('database-0001.json.gz');
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
    await service.stop();
  });
});

/** A directory with only the first ones. */
async function firstMigrations(count: number): Promise<string> {
  const to = await mkdtemp(join(tmpdir(), 'signalbox-migrations-'));
  const from = new URL('../../src/db/migrations/', import.meta.url);
  const names = (await readdir(from)).toSorted().slice(0, count);
  for (const name of names) await cp(new URL(name, from), join(to, name));
  return to;
}
