// The maintenance of many organizations: a fault in one does not affect the others, and nodes do not wait for one another.
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import type { Db } from '../../src/db/db.ts';
import { createUpkeep, type Upkeep } from '../../src/maintenance.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

let world: TestPlatform;
let clock: ManualClock;
let upkeep: Upkeep | undefined;
beforeEach(async () => {
  clock = createManualClock();
  world = await createTestPlatform({ clock });
});
afterEach(async () => {
  await upkeep?.stop();
  upkeep = undefined;
  await world.close();
});

/** With records that wait for the sequencer, and none that are sequenced. */
async function organizations(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const { organizationId } = await world.platform.db.transaction((tx) => createOrganization(tx, `${n}`, clock.now()));
    await createAgent({ ...world.ctx, organizationId }, { name: 'A', model: 'scripted/x' });
    ids.push(organizationId);
  }
  return ids.toSorted();
}

async function waiting(organizationIds: readonly string[]): Promise<string[]> {
  const rows = await world.platform.db.query<{ id: string }>(sql`
    select distinct organization_id as id from events_pending where organization_id = any(${[...organizationIds]}::uuid[])
    order by organization_id`);
  return rows.map(({ id }) => id);
}

function start(platform = world.platform): void {
  upkeep = createUpkeep(platform, { eventsKeptDays: 1, deliveriesKeptDays: 1, filesKeptDays: 30 });
  upkeep.start();
}

test('an organization that another node is sequencing does not delay the others', async () => {
  const ids = await organizations(3);
  const [busy] = ids;
  await world.platform.db.transaction(async (tx) => {
    await tx.query(sql`select 1 from event_heads where organization_id = ${busy} for update`);
    start();
    await expect.poll(() => waiting(ids)).toEqual([busy]);
  });
  await clock.passUntil(async () => (await waiting(ids)).length === 0);
});

test('an organization that cannot be sequenced does not delay the others', async () => {
  const ids = await organizations(3);
  const [broken] = ids;
  await world.platform.db.execute(sql`
    insert into events (organization_id, sequence, event_id, body, occurred_at, hash)
    select p.organization_id, h.sequence + 1, gen_random_uuid(), p.body, p.occurred_at, h.hash
    from events_pending p join event_heads h on h.organization_id = p.organization_id
    where p.organization_id = ${broken} limit 1`);
  start();
  await expect.poll(() => waiting(ids)).toEqual([broken]);
});

test.each([
  ['the search for the organizations', /^\s*select organization_id as "organizationId" from organizations/],
  ['the work of one organization', /webhook_deliveries/],
])('hourly work is repeated after 5, 10 and 20 seconds while %s fails, until it succeeds', async (_, part) => {
  const attempts: number[] = [];
  const startedMs = clock.now().getTime();
  const seconds = () => (clock.now().getTime() - startedMs) / 1_000;
  const over = async (db: Db): Promise<Db> => ({
    ...db,
    async query<Row>(statement: Sql) {
      if (part.test(statement.text)) {
        attempts.push(seconds());
        if (seconds() < 35) throw new Error('broken');
      }
      return db.query<Row>(statement);
    },
  });
  start(await world.anotherNode({ clock, over }));
  await clock.pass(36_000);
  await clock.pass(600_000, 60_000);
  expect([...new Set(attempts)]).toEqual([0, 5, 15, 35]);
});
