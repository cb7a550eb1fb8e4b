// Two nodes on one database that wake each other by NOTIFY: activity on one costs the other only what the other needs of it.
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import { foldTails } from '../../src/journal/append.ts';
import { type Appender, createAppender, type TextHead } from '../../src/journal/appender.ts';
import { readJournalInfo } from '../../src/journal/read.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import type { Platform } from '../../src/platform.ts';
import { lockSession } from '../../src/session-rows/session.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { partsOf, wholeOf } from '../support/stream-parts.ts';

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

/** Resolves when the node listens to other nodes. */
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

/** A stream of each session on the node, and how much text each has shown. */
async function follow(node: Platform, sessionIds: readonly string[], signal: AbortSignal) {
  const textOf = new Map<string, number>();
  const position = { turn: 1, seq: 0 };
  const streams = sessionIds.map(async (sessionId) => {
    const head = await readJournalInfo(node.db, world.organizationId, sessionId);
    for await (const { json } of wholeOf(partsOf(node.live.follow(head, position), signal))) {
      for (const { delta = '' } of (JSON.parse(json) as { chunks: { delta?: string }[] }).chunks)
        textOf.set(sessionId, (textOf.get(sessionId) ?? 0) + delta.length);
    }
  });
  return { textOf, ended: Promise.all(streams) };
}

function headOf(sessionId: string): TextHead {
  const onFenced = () => expect.unreachable();
  const { organizationId } = world;
  const place = { organizationId, environment: 'production', sessionId, epoch: 0, turn: 1, nextSeq: 1 };
  return { ...place, pending: [], carry: '', writing: undefined, first: false, onFenced };
}

test('while another node runs 500 sessions at once, no journal without new chunks is read', async () => {
  let read: Sql[] = [];
  const [here, there] = await Promise.all(
    [
      await world.anotherNode({ acrossNodes: true }),
      // No poll is due by its clock: what it reads was requested by a wake-up.
      await world.anotherNode({
        acrossNodes: true,
        clock: createManualClock(),
        onQuery: (statement) => read.push(statement),
      }),
    ].map(listening),
  );
  const [idle, active] = [await insertSessions(IDLE), await insertSessions(ACTIVE)];
  const gone = new AbortController();
  const { textOf, ended } = await follow(there!, [...idle, ...active], gone.signal);
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
    await expect.poll(() => active.every((id) => textOf.get(id) === n)).toBe(true);
  }
  await appender.close();

  const journals = read.filter(isAbout('from segments'));
  const idleIds = new Set<unknown>(idle);
  expect(journals.filter(({ values }) => values.flat().some((value) => idleIds.has(value)))).toHaveLength(0);
  // Each flush is read for all sessions together. Its payloads may arrive one by one, and PostgreSQL's commits two at a time.
  expect(journals.length).toBeLessThanOrEqual(8 * FLUSHES);
  const isOther = (statement: Sql) => !isAbout('from segments')(statement) && !isAbout('pg_notify')(statement);
  expect(read.filter(isOther)).toEqual([]);
  gone.abort();
  await Promise.all([ended, ...claims]);
}, 120_000);

test('a commit of another node arrives completely without a poll, even if it is larger than one read', async () => {
  let reads = 0;
  const onQuery = ({ text }: Sql) => {
    if (text.includes('from segments')) reads += 1;
  };
  const [here, there] = await Promise.all(
    [
      await world.anotherNode({ acrossNodes: true }),
      await world.anotherNode({ acrossNodes: true, clock: createManualClock(), onQuery }),
    ].map(listening),
  );
  const sessionIds = await insertSessions(60);
  const gone = new AbortController();
  const { textOf, ended } = await follow(there!, sessionIds, gone.signal);
  await expect.poll(() => reads).toBe(sessionIds.length);
  const appender = createAppender(here!);
  for (const head of sessionIds.map(headOf)) {
    for (let n = 0; n < 30; n += 1) await appender.append(head, 'x'.repeat(2_000));
  }
  await expect.poll(() => sessionIds.every((id) => textOf.get(id) === 60_000)).toBe(true);
  await appender.close();
  gone.abort();
  await ended;
});

test.each(['segments', 'the tail'])(
  'each delta in %s reaches a reader on another node, also after a kill -9 of the node that wrote it, and no node without readers',
  async (place) => {
    const tail = () => (place === 'segments' ? undefined : { nodeId: newUuid(), isAllowed: () => true });
    const [first, next, there, without] = await Promise.all(
      [
        await world.anotherNode({ acrossNodes: true }),
        await world.anotherNode({ acrossNodes: true }),
        // It does not poll.
        await world.anotherNode({ acrossNodes: true, clock: createManualClock() }),
        await world.anotherNode({ acrossNodes: true }),
      ].map(listening),
    );
    const [sessionId = ''] = await insertSessions(1);
    const gone = new AbortController();
    const { textOf, ended } = await follow(there!, [sessionId], gone.signal);
    const hints = () => without!.wake.hintCounts().elsewhere.get('journal') ?? 0;
    let written = 0;
    /** Returns how many hints the node without readers got of them. */
    const write = async (head: TextHead, appender: Appender, count: number) => {
      const before = hints();
      for (let n = 0; n < count; n += 1) {
        await appender.append(head, 'x');
        written += 1;
        await expect.poll(() => textOf.get(sessionId), { interval: 5 }).toBe(written);
      }
      return hints() - before;
    };

    const appender = createAppender(first!, tail());
    const head = headOf(sessionId);
    // To begin with, it does not know whether there are nodes of release 0.1.
    await expect.poll(() => write(head, appender, 1)).toBe(0);
    expect(await write(head, appender, 10)).toBe(0);

    // It is killed: it says nothing to anyone, and another node claims the session.
    await world.platform.db.execute(sql`update sessions set epoch = epoch + 1 where session_id = ${sessionId}`);
    const row = await world.platform.db.transaction((tx) => lockSession(tx, world.organizationId, sessionId));
    expect(row.nextSeq).toBe(place === 'segments' ? written + 1 : 2);
    await foldTails(next!, [row], new Date());
    const nextAppender = createAppender(next!, tail());
    const claimed = { ...headOf(sessionId), epoch: 1, nextSeq: head.nextSeq };
    await expect.poll(() => write(claimed, nextAppender, 1)).toBe(0);
    expect(await write(claimed, nextAppender, 10)).toBe(0);
    await Promise.all([appender.close(), nextAppender.close()]);
    gone.abort();
    await ended;
  },
);
