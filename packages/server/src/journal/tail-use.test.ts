import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { migrate } from '../db/schema/migrate.ts';
import { readMigrations } from '../db/schema/migration-files.ts';
import { newUuid } from '../lib/ids.ts';
import { createNodeLease } from '../node/claims/node-lease.ts';
import { createTailUse, type TailUse } from './tail-use.ts';

let world: TestPlatform;
let clock: ManualClock;
let use: TailUse;
beforeEach(async () => {
  world = await createTestPlatform();
  clock = createManualClock();
  use = createTailUse({ ...world.platform, clock });
});
afterEach(() => world.close());

/** What it says after the time, with a look now and then. */
async function after(seconds: number): Promise<boolean> {
  for (let passed = 0; passed < seconds; passed += 5) {
    await use.look();
    await clock.pass(5_000);
  }
  await use.look();
  return use.isAllowed();
}

test('the tail is used a minute after the first look, and only while looks succeed', async () => {
  await createNodeLease(world.platform, { nodeId: newUuid(), runs: true }).start();
  expect(use.isAllowed()).toBe(false);
  expect([await after(55), await after(5)]).toEqual([false, true]);
  await clock.pass(14_000);
  expect(use.isAllowed()).toBe(true);
  await clock.pass(2_000);
  expect(use.isAllowed()).toBe(false);
  expect(await after(0)).toBe(true);
});

test('from the first look on, a release without the tail refuses to start', async () => {
  const version = 1 + (await readMigrations()).findIndex(({ name }) => name === 'journal_tail');
  const older = () => migrate(world.platform.db, { info() {}, warn() {} }, { through: version - 1 });
  await older();
  await use.look();
  await expect(older()).rejects.toThrow(`can't use it: it knows versions up to ${version - 1}`);
  // An operator allows it again while the tail is in use.
  await world.platform.db.execute(sql`update signalbox_migrations set works_with = 1`);
  expect(await after(0)).toBe(false);
  await expect(older()).rejects.toThrow();
});

test('the tail is not used beside a node that does not read it, and again a minute after that is gone', async () => {
  expect(await after(60)).toBe(true);
  const nodeId = newUuid();
  // As a node of release 0.1 writes it.
  await world.platform.db.execute(sql`
    insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 hour')`);
  expect(await after(0)).toBe(false);
  await world.platform.db.execute(sql`
    update nodes set lease_expires_at = now() - interval '1 second' where node_id = ${nodeId}`);
  expect([await after(55), await after(5)]).toEqual([false, true]);
});

test('a node of release 0.1 that only serves the API has no row, and is found by its connection', async () => {
  expect(await after(60)).toBe(true);
  const node = await world.platform.db.connect();
  await node.query('listen signalbox_wake');
  expect(await after(0)).toBe(false);
  await node.end();
});
