// Two nodes on one database that wake each other by NOTIFY: what happens on one costs the other no more than what it wants of it.
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAgent } from '../src/agents/agents.ts';
import { createAppender, type TextHead } from '../src/journal/appender.ts';
import { readHead } from '../src/journal/read.ts';
import { newUuid, uuidOf } from '../src/lib/ids.ts';
import type { Platform } from '../src/platform.ts';
import { createManualClock } from './support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from './support/platform.ts';

const ACTIVE = 500;
const IDLE = 1_000;
const FLUSHES = 10;

let world: TestPlatform;
let agentId: string;
beforeAll(async () => {
  world = await createTestPlatform();
  agentId = uuidOf('agt', (await createAgent(world.ctx, { name: 'A', model: 'scripted/x' })).agent.agentId);
});
afterAll(() => world.close());

/** Resolves when the node hears of others. */
async function listening(platform: Platform): Promise<Platform> {
  await new Promise<void>((resolve) => {
    const stop = platform.wake.subscribe('child', () => {
      stop();
      resolve();
    });
  });
  return platform;
}

async function insertSessions(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newUuid());
  const now = new Date();
  await world.platform.db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, close_on_idle, metadata,
      created_at, updated_at)
    select ${world.organizationId}, id, ${agentId}, 'production', 'idle', 1, false, '{}', ${now}::timestamptz,
      ${now}::timestamptz
    from unnest(${ids}::uuid[]) as id`);
  return ids;
}

function headOf(sessionId: string): TextHead {
  const onFenced = () => expect.unreachable();
  const { organizationId } = world;
  const place = { organizationId, environment: 'production', sessionId, epoch: 0, turn: 1, nextSeq: 1 };
  return { ...place, pending: [], carry: '', writing: undefined, first: false, onFenced };
}

test('while another node runs 500 sessions at once, no journal is read in which nothing happened', async () => {
  let read: Sql[] = [];
  const [here, there] = await Promise.all(
    [
      await world.anotherNode({ acrossNodes: true }),
      // By its clock no poll is due: what it reads was asked for by a wake-up.
      await world.anotherNode({
        acrossNodes: true,
        clock: createManualClock(),
        onQuery: (statement) => read.push(statement),
      }),
    ].map(listening),
  );
  const [idle, active] = [await insertSessions(IDLE), await insertSessions(ACTIVE)];
  const gone = new AbortController();
  const textOf = new Map<string, number>();
  const position = { turn: 1, seq: 0 };
  const streams = [...idle, ...active].map(async (sessionId) => {
    const head = await readHead(there!.db, world.organizationId, sessionId);
    for await (const { json } of there!.live.follow(head, position, undefined).read(gone.signal)) {
      for (const { delta = '' } of (JSON.parse(json) as { chunks: { delta?: string }[] }).chunks)
        textOf.set(sessionId, (textOf.get(sessionId) ?? 0) + delta.length);
    }
  });
  const claims = Array.from({ length: 50 }, (_, n) =>
    there!.offers.claim({ organizationId: world.organizationId, queue: `queue-${n}` }, 60_000, gone.signal),
  );
  const isAbout = (table: string) => (statement: Sql) => statement.text.includes(table);
  await expect.poll(() => read.filter(isAbout('from segments')).length).toBe(IDLE + ACTIVE);
  await expect.poll(() => read.filter(isAbout('x.queue = ')).length).toBe(1);

  read = [];
  const appender = createAppender(here!);
  const heads = active.map(headOf);
  for (let n = 1; n <= FLUSHES; n += 1) {
    for (const head of heads) await appender.append(head, 'x');
    await expect.poll(() => active.every((id) => textOf.get(id) === n), { timeout: 20_000 }).toBe(true);
  }
  await appender.close();

  const journals = read.filter(isAbout('from segments'));
  const idleIds = new Set<unknown>(idle);
  expect(journals.filter(({ values }) => values.some((value) => idleIds.has(value)))).toHaveLength(0);
  // Each flush at most twice: a hint may come while the stream reads what it is about.
  expect(journals.length).toBeLessThanOrEqual(2 * FLUSHES * ACTIVE);
  expect(read.filter((statement) => !isAbout('from segments')(statement))).toEqual([]);
  gone.abort();
  await Promise.all([...streams, ...claims]);
}, 120_000);
