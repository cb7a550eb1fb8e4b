// The maintenance of many organizations: a fault in one does not affect the others, and nodes do not wait for one another.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
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

function start(): void {
  upkeep = createUpkeep(world.platform, { eventsKeptDays: 1, deliveriesKeptDays: 1, filesKeptDays: 30 });
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
