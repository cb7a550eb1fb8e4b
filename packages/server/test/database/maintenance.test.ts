// The maintenance of many organizations: a fault in one does not affect the others, and nodes do not wait for one another.
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import { hasEndings } from '../../src/agents/model-endings.ts';
import type { Db } from '../../src/db/db.ts';
import { createRound, ROUND_PAGE } from '../../src/db/rounds.ts';
import { hasOldEvents } from '../../src/events/retention.ts';
import { hasOldFiles } from '../../src/files/retention.ts';
import { firstUuidOf, newUuid } from '../../src/lib/ids.ts';
import { createUpkeep, type Upkeep } from '../../src/maintenance.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { hasOldSessions } from '../../src/sessions/retention/retention.ts';
import { knownModels } from '../../src/usage/known-models.ts';
import { hasOldDeliveries } from '../../src/webhooks/retention.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { costOf } from '../support/plans.ts';
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
  ['the search for the organizations', /kept_transcripts[\s\S]*from organizations o/],
  ['the work of one organization', /^\s*select k.session_id as "sessionId" from kept_transcripts/],
])('hourly work is repeated after 5, 10 and 20 seconds while %s fails, until it succeeds', async (_, part) => {
  const attempts: number[] = [];
  await world.platform.db.execute(sql`
    insert into kept_transcripts (organization_id, session_id, due) values (${world.organizationId}, ${newUuid()}, true)`);
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

/** Organizations with environments, whose idle sessions can be found. All were created in this order. */
async function manyOrganizations(count: number): Promise<void> {
  const { db } = world.platform;
  const now = clock.now();
  await db.execute(sql`
    insert into organizations (organization_id, name, created_at)
    select ('ffffffff-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, 'O', ${now} from generate_series(1, ${count}) n`);
  await db.execute(sql`
    insert into event_heads (organization_id, sequence, hash, anchor_sequence, anchor_hash, searched, counted, recounted_at)
    select organization_id, 1, '', 0, '', 1, 1, ${now} from organizations where name = 'O'`);
  await db.execute(sql`
    insert into events (organization_id, sequence, event_id, body, occurred_at, hash)
    select organization_id, 1, gen_random_uuid(), '{}', ${now}, '' from organizations where name = 'O'`);
  await db.execute(sql`
    insert into environments (organization_id, name, environment_id, created_at)
    select organization_id, 'production', gen_random_uuid(), ${now} from organizations where name = 'O'`);
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    select organization_id, organization_id, 1, ${now}, ${now} from organizations where name = 'O'`);
  await db.execute(sql`
    insert into agent_versions (organization_id, agent_id, version, definition, created_at)
    select organization_id, organization_id, 1, ${definition('x')}::json, ${now} from organizations where name = 'O'`);
  await session(sql`o.organization_id`, 'idle', null);
  await db.execute(sql`analyze`);
}

function definition(model: string): string {
  return JSON.stringify({ model: { provider: 'scripted', model: 'x', fallbacks: [{ provider: 'openai', model }] } });
}

async function session(organizationId: Sql, status: string, endedAt: Date | null, environment = 'production') {
  await world.platform.db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at,
      updated_at, ended_at)
    select o.organization_id, gen_random_uuid(), o.organization_id, ${environment}, ${status}, false, '{}', ${clock.now()},
      ${clock.now()}, ${endedAt}::timestamptz
    from organizations o where o.name = 'O' and o.organization_id = ${organizationId}`);
}

test('a statement of an idle node reads no more however many organizations there are', async () => {
  await manyOrganizations(8 * ROUND_PAGE);
  const statements = new Map<string, Sql>();
  const node = await world.anotherNode({ clock, onQuery: (statement) => statements.set(statement.text, statement) });
  upkeep = createUpkeep(node, { eventsKeptDays: 1, deliveriesKeptDays: 1, filesKeptDays: 30, sessionsKeptDays: 5 });
  upkeep.start();
  await clock.pass(50_000);
  await upkeep.stop();
  const costs: [number, string][] = [];
  for (const statement of statements.values()) {
    const { rows, compared } = await costOf(world.platform.db, statement);
    costs.push([rows + compared, statement.text]);
  }
  // A few look-ups for each organization of a page.
  const inRounds = costs.filter(([, text]) => /from organizations o\s/.test(text));
  expect(inRounds.length).toBe(7);
  for (const [rows] of inRounds) expect(rows).toBeLessThan(7 * ROUND_PAGE);
  const others = costs.filter((cost) => !inRounds.includes(cost));
  expect(others.length).toBeGreaterThan(5);
  for (const [rows, text] of others) expect(rows, text).toBeLessThan(10);
});

test('a round comes to every organization, and finds what each has to do', async () => {
  await manyOrganizations(ROUND_PAGE + 10);
  const { db } = world.platform;
  const now = clock.now();
  const daysAgo = (days: number) => new Date(now.getTime() - days * 24 * 3600_000);
  const all = await db.query<{ id: string }>(
    sql`select organization_id as id from organizations where name = 'O' order by 1`,
  );
  const idAt = (index: number) => all.at(index)!.id;
  const found = async (isDue: Parameters<typeof createRound>[2]): Promise<string[]> => {
    const next = createRound(world.platform, 'something', isDue);
    const ids: string[] = [];
    for (let isLast = false; !isLast; ) {
      const page = await next();
      ids.push(...page.organizationIds);
      isLast = page.isLast;
    }
    return ids;
  };
  expect(await found(() => sql`true`)).toHaveLength(all.length + 1);

  await db.execute(sql`update events set occurred_at = ${daysAgo(3)} where organization_id = ${idAt(-1)}`);
  expect(await found((id, within) => hasOldEvents(id, daysAgo(2), within))).toEqual([idAt(-1)]);
  expect(await found((id, within) => hasOldEvents(id, daysAgo(4), within))).toEqual([]);

  await session(sql`${idAt(1)}::uuid`, 'completed', daysAgo(3));
  await session(sql`${idAt(2)}::uuid`, 'completed', daysAgo(3), 'deleted');
  await db.execute(sql`
    insert into kept_transcripts (organization_id, session_id, due) values (${idAt(3)}, ${newUuid()}, true),
      (${idAt(4)}, ${newUuid()}, false)`);
  await session(sql`${idAt(5)}::uuid`, 'completed', daysAgo(3));
  await db.execute(sql`update environments set keep_sessions_days = 2 where organization_id = ${idAt(5)}`);
  await db.execute(sql`update environments set keep_sessions_days = 4 where organization_id = ${idAt(1)}`);
  expect(await found((id, within) => hasOldSessions(id, 2, now, within))).toEqual([1, 2, 3, 5].map(idAt));
  expect(await found((id, within) => hasOldSessions(id, 4, now, within))).toEqual([2, 3, 5].map(idAt));
  expect(await found((id, within) => hasOldSessions(id, undefined, now, within))).toEqual([3, 5].map(idAt));

  const files = [
    { at: 6, usedAt: daysAgo(3), isUnsent: false, purgeAfter: null },
    { at: 7, usedAt: daysAgo(1.5), isUnsent: true, purgeAfter: null },
    { at: 8, usedAt: daysAgo(1.5), isUnsent: false, purgeAfter: null },
    { at: 9, usedAt: daysAgo(3), isUnsent: true, purgeAfter: now },
  ];
  for (const { at, usedAt, isUnsent, purgeAfter } of files) {
    await db.execute(sql`
      insert into files (organization_id, file_id, environment, filename, media_type, bytes, store, created_at, used_at, purge_after,
        is_unsent, uploaded_by)
      values (${idAt(at)}, ${newUuid()}, 'production', 'f', 'text/plain', 1, 'database', ${usedAt}, ${usedAt}, ${purgeAfter},
        ${isUnsent}, ${newUuid()})`);
  }
  expect(await found((id, within) => hasOldFiles(id, 2, now, within))).toEqual([6, 7].map(idAt));

  const kept = newUuid();
  await db.execute(sql`
    insert into webhook_subscriptions (organization_id, environment, webhook_subscription_id, url, chunk_types, status,
      sealed_secret, secret_version, created_at, updated_at)
    select organization_id, 'production', ${kept}::uuid, 'https://example.com', '{}', 'paused', '', 1, ${now}, ${now}
    from organizations where name = 'O'`);
  const deliver = (at: number, subscription: string, deliveryId: string, isPending = false) =>
    db.execute(sql`
      insert into ${isPending ? sql`pending_deliveries` : sql`webhook_deliveries`} (organization_id, webhook_subscription_id,
        delivery_id, session_id, previous_cursor, from_turn, from_seq, to_turn, to_seq, chunk_types, occurred_at, created_at
        ${isPending ? sql`` : sql`, finished_at, status, attempts, attempt_count`})
      values (${idAt(at)}, ${subscription}, ${deliveryId}, ${newUuid()}, '', 0, 0, 1, 1, '', ${now}, ${now}
        ${isPending ? sql`` : sql`, ${now}, 'succeeded', '{}', 1`})`);
  await deliver(10, kept, firstUuidOf(daysAgo(3)));
  await deliver(11, kept, firstUuidOf(daysAgo(1)));
  await deliver(12, newUuid(), firstUuidOf(daysAgo(1)));
  await deliver(13, newUuid(), newUuid(), true);
  await deliver(14, kept, firstUuidOf(daysAgo(3)), true);
  await db.execute(sql`
    update sessions set delivery_due = true, delivery_subscription_id = ${newUuid()} where organization_id = ${idAt(15)}`);
  await db.execute(sql`
    update sessions set delivery_due = true, delivery_subscription_id = ${kept} where organization_id = ${idAt(16)}`);
  expect(await found((id, within) => hasOldDeliveries(id, daysAgo(2), within))).toEqual([10, 12, 13, 15].map(idAt));

  const [ending, { endsAt }] = Object.entries(knownModels().models).findLast(([, one]) => one.endsAt !== null)!;
  const [, model = ''] = ending.split('/');
  const names = async (at: number) =>
    db.execute(
      sql`update agent_versions set definition = ${definition(model)}::json where organization_id = ${idAt(at)}`,
    );
  for (const at of [17, 18, -1]) await names(at);
  await db.execute(sql`update agents set archived_at = ${now} where organization_id = ${idAt(18)}`);
  // Too many to look at with the others.
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    select ${idAt(19)}, gen_random_uuid(), 1, ${now}, ${now} from generate_series(1, 20)`);
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    select ${idAt(20)}, gen_random_uuid(), 1, ${now}, ${now} from generate_series(1, 19)`);
  const daysBefore = (days: number) => new Date(Date.parse(endsAt!) - days * 24 * 3600_000);
  expect(await found((id, within) => hasEndings(id, daysBefore(30), within))).toEqual([17, 19, -1].map(idAt));
});
