// The numbers of open sessions that the sequencer keeps (src/events/open-sessions.ts).
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { createRound } from '../../src/db/rounds.ts';
import { countOpenSessions, hasToCount } from '../../src/events/open-sessions.ts';
import { sequenceEvents } from '../../src/events/sequencer.ts';
import { getOverview } from '../../src/overview/overview.ts';
import { cancelSession, closeSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { deleteSession, openSession } from '../../src/sessions/sessions.ts';
import { listenTo } from '../support/plans.ts';
import { createWorld, type World } from '../support/session-world.ts';

let world: World;
let db: Db;
let organizationId: string;
let agentId: string;
beforeEach(async () => {
  world = await createWorld();
  db = world.platform.db;
  organizationId = world.organizationId;
  agentId = await world.agent();
});
afterEach(() => world.close());

const now = () => world.platform.clock.now();
const move = () => sequenceEvents(db, organizationId);

async function open(environment = 'production'): Promise<string> {
  const { session } = await openSession(world.ctx, { agentId, environment });
  return session.sessionId;
}

async function head() {
  const [row] = await db.query<{ open: object | null; counted: number; sequence: number }>(sql`
    select open_sessions as open, counted, sequence from event_heads where organization_id = ${organizationId}`);
  return row!;
}

/** The idle sessions of the overview, all and by environment; and whether they were counted one by one. */
async function idle() {
  const listened = listenTo(db);
  const numbers: number[] = [];
  for (const input of [{}, { environment: 'production' }, { environment: 'staging' }]) {
    const { overview } = await getOverview({ ...world.ctx, db: listened.db } as never, input);
    numbers.push(overview.sessions.idle);
  }
  return { numbers, wasCounted: listened.batches.length > 3 };
}

const dueNow = async () =>
  (await createRound(world.platform, 'counts', (id, within) => hasToCount(id, now(), within))()).organizationIds;

test('the overview has the open sessions of this moment, before and after their records are moved', async () => {
  const [first, second] = [await open(), await open()];
  await open('staging');
  expect(await idle()).toEqual({ numbers: [3, 2, 1], wasCounted: false });
  await move();
  expect(await head()).toMatchObject({ open: { production: 2, staging: 1 } });
  await closeSession(world.ctx, { sessionId: first });
  await deleteSession(world.ctx, { sessionId: first });
  expect(await idle()).toEqual({ numbers: [2, 1, 1], wasCounted: false });
  await cancelSession(world.ctx, { sessionId: second });
  await move();
  const { counted, sequence, open: kept } = await head();
  expect([kept, counted]).toEqual([{ staging: 1 }, sequence]);
  expect(await idle()).toEqual({ numbers: [1, 0, 1], wasCounted: false });
});

test('forks count, and running and waiting sessions are not idle', async () => {
  const origin = await open();
  await forkSession(world.ctx, { sessionId: origin, atTurn: 0 });
  await move();
  await world.open(agentId);
  const { overview } = await getOverview(world.ctx as never, {});
  expect(overview.sessions).toMatchObject({ idle: 2, running: 1, waiting: 0 });
});

test('what code of an earlier release moved is added by readers and by the next batch', async () => {
  await open();
  await move();
  const before = await head();
  await open();
  await cancelSession(world.ctx, { sessionId: await open('staging') });
  await move();
  await db.execute(sql`
    update event_heads set open_sessions = ${JSON.stringify(before.open)}::jsonb, counted = ${before.counted}
    where organization_id = ${organizationId}`);
  expect(await idle()).toEqual({ numbers: [2, 2, 0], wasCounted: false });
  expect(await dueNow()).toEqual([organizationId]);
  await open('staging');
  await move();
  const { counted, sequence, open: kept } = await head();
  expect([kept, counted]).toEqual([{ production: 2, staging: 1 }, sequence]);
});

test.each([
  ['sessions that were never counted', sql`open_sessions = null`],
  ['records that retention deleted before they were counted', sql`counted = 0, anchor_sequence = 1`],
])('%s are counted one by one, by the overview until a round has done it', async (_, change) => {
  await open();
  await open('staging');
  await move();
  await db.execute(sql`update event_heads set ${change}, anchor_hash = hash where organization_id = ${organizationId}`);
  expect(await idle()).toEqual({ numbers: [2, 1, 1], wasCounted: true });
  await open();
  await move();
  expect((await head()).open).toBe(null);
  expect(await dueNow()).toEqual([organizationId]);
  expect(await countOpenSessions(db, organizationId, now())).toBe(undefined);
  expect(await dueNow()).toEqual([]);
  expect(await idle()).toEqual({ numbers: [3, 2, 1], wasCounted: false });
});

test('a count while sessions open and end, and their records are moved, is exact', async () => {
  const ended = await open();
  await open();
  await move();
  await open('staging');
  const during: Db = {
    ...db,
    async execute(statement) {
      await cancelSession(world.ctx, { sessionId: ended });
      await open();
      await open('staging');
      await move();
      return db.execute(statement);
    },
  };
  expect(await countOpenSessions(during, organizationId, now())).toBe(undefined);
  expect(await idle()).toEqual({ numbers: [4, 2, 2], wasCounted: false });
  await open();
  await move();
  expect((await head()).open).toEqual({ production: 3, staging: 2 });
});

test('sessions are counted in chunks, all from one snapshot', async () => {
  for (const environment of ['production', 'staging', 'production', 'production']) await open(environment);
  await move();
  let chunks = 0;
  const during: Db = {
    ...db,
    transaction: (fn) =>
      db.transaction((tx) =>
        fn({
          ...tx,
          async query<Row>(statement: Sql) {
            const rows = await tx.query<Row>(statement);
            if (statement.text.includes('max(')) chunks += 1;
            await open('staging');
            return rows;
          },
        }),
      ),
  };
  expect(await countOpenSessions(during, organizationId, now(), 2)).toBe(undefined);
  expect(chunks).toBe(2);
  expect((await head()).open).toEqual({ production: 3, staging: 1 });
  expect(await idle()).toEqual({ numbers: [7, 3, 4], wasCounted: false });
});

test('a wrong number is found within a week, and replaced', async () => {
  await open();
  await move();
  await countOpenSessions(db, organizationId, now());
  await db.execute(sql`
    update event_heads set open_sessions = '{"production": 7}', recounted_at = ${new Date(now().getTime() - 8 * 86_400_000)}
    where organization_id = ${organizationId}`);
  expect(await dueNow()).toEqual([organizationId]);
  expect(await countOpenSessions(db, organizationId, now())).toEqual({
    kept: { production: 7 },
    counted: { production: 1 },
  });
  expect(await idle()).toEqual({ numbers: [1, 1, 0], wasCounted: false });
});
