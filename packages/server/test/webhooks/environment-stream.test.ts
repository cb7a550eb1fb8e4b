// What listeners of an environment receive, with a manual clock, so that only what a test causes happens.
import type { Chunk, Envelope } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId } from '../../src/lib/ids.ts';
import { createEnvironmentStreams, streamEnvironment } from '../../src/listening/environment-streams.ts';
import { idle } from '../support/idle.ts';
import { costOf, listenTo } from '../support/plans.ts';
import { partsOf } from '../support/stream-parts.ts';
import { append, createWorld, status, type TestSession, text, toolResult, type World } from '../support/webhooks.ts';

let world: World;
let ctx: PoolContext;
let open: Listening[];
beforeEach(async () => {
  world = await createWorld();
  open = [];
  const live = { throughGate: <T>(_: string, read: () => Promise<T>) => read() } as PoolContext['live'];
  const { db, wake, clock } = world.platform;
  const environmentStreams = createEnvironmentStreams({ db, wake, clock, live });
  ctx = { ...world.context(), live, environmentStreams };
});
afterEach(async () => {
  await Promise.all(open.map((listening) => listening.stop()));
  await world.end();
});

interface Listening {
  readonly envelopes: Envelope[];
  /** The cursor of the last event. */
  cursor(): string;
  /** The chunks of a session, in the order of their arrival. */
  chunksOf(session: TestSession): Chunk[];
  stop(): Promise<void>;
}

type Query = Omit<Parameters<typeof streamEnvironment>[1], 'env'>;

async function listen(query: Query = {}, caller = ctx): Promise<Listening> {
  const over = new AbortController();
  const stream = await streamEnvironment(caller, { env: 'production', ...query });
  const envelopes: Envelope[] = [];
  let cursor = '';
  const connected = Promise.withResolvers<void>();
  const read = (async () => {
    for await (const part of partsOf(stream, over.signal)) {
      cursor = part.cursor;
      connected.resolve();
      if (part.json !== '') envelopes.push(JSON.parse(String(part.json)) as Envelope);
    }
  })();
  await Promise.race([connected.promise, read]);
  const listening: Listening = {
    envelopes,
    cursor: () => cursor,
    chunksOf: ({ sessionId }) =>
      envelopes.filter((one) => one.sessionId === formatId('ses', sessionId)).flatMap(({ chunks }) => chunks),
    async stop() {
      over.abort();
      await read;
    },
  };
  open.push(listening);
  return listening;
}

const seqs = (chunks: readonly Chunk[]) => chunks.map(({ seq }) => seq);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test('a listener gets what is committed from then on, of its environment, agent and types', async () => {
  const [session, elsewhere] = [await world.session(), await world.session({ environment: 'staging' })];
  const stranger = await world.session({ organizationId: world.strangerId });
  await append(world, session, [status()]);
  await world.clock.advance(1_000);
  const [all, results, nobody] = await Promise.all([
    listen(),
    listen({ types: 'tool.result' }),
    listen({ agentId: formatId('agt', session.sessionId) }),
  ]);
  for (const one of [elsewhere, stranger, session]) await append(world, one, [toolResult(), status()]);
  await world.advanceUntil(() => all.envelopes.length > 0 && results.envelopes.length > 0, 0);
  // Without a subscription: the types of a new one, which has no results.
  expect(all.envelopes).toMatchObject([{ environment: 'production', chunks: [{ type: 'session.status', seq: 3 }] }]);
  expect(results.envelopes).toMatchObject([{ chunks: [{ type: 'tool.result', seq: 2 }] }]);
  await world.clock.advance(1_000);
  await world.subscribe('https://example.com/', { chunkTypes: ['tool.result'] });
  const subscribed = await listen();
  await append(world, session, [toolResult(), status()]);
  await world.advanceUntil(() => subscribed.envelopes.length > 0, 0);
  expect(subscribed.chunksOf(session)).toMatchObject([{ type: 'tool.result' }]);
  expect(nobody.envelopes).toEqual([]);
});

test('text waits up to 100 ms for more text, and anything else is sent at once with the text before it', async () => {
  const session = await world.session();
  const listening = await listen();
  await append(world, session, [text('a')]);
  await append(world, session, [text('b')]);
  await world.clock.advance(99);
  expect(listening.envelopes).toEqual([]);
  await world.advanceUntil(() => listening.envelopes.length > 0, 1);
  expect(listening.envelopes.map(({ chunks }) => seqs(chunks))).toEqual([[1, 2]]);
  await append(world, session, [text('c')]);
  await append(world, session, [status()]);
  await world.advanceUntil(() => listening.chunksOf(session).length === 4, 0);
});

test('commits without a wake-up are found by a sweep: of running, of idle and of ended sessions', async () => {
  const [running, idle, ended, old] = await Promise.all(Array.from({ length: 4 }, () => world.session()));
  await append(world, old!, [status()]);
  await world.clock.advance(1_000);
  const listening = await listen();
  const set = (session: TestSession, value: string, endedAt: Date | null) =>
    world.db.query(sql`
      update sessions set status = ${value}, updated_at = ${world.clock.now()}, ended_at = ${endedAt}
      where session_id = ${session.sessionId}`);
  for (const one of [running!, idle!, ended!]) await append(world, one, [status()], { isQuiet: true });
  await set(running!, 'running', null);
  await set(ended!, 'completed', world.clock.now());
  await world.advanceUntil(() => listening.envelopes.length === 3);
  for (const one of [running!, idle!, ended!]) expect(seqs(listening.chunksOf(one))).toEqual([1]);
  expect(listening.chunksOf(old!)).toEqual([]);
});

test('a listener that resumes anywhere misses nothing, and its cursor follows the time', async () => {
  const sessions = await Promise.all(Array.from({ length: 5 }, () => world.session()));
  const first = await listen();
  const start = new Date(first.cursor());
  for (const session of sessions) await append(world, session, [status()]);
  await world.advanceUntil(() => first.envelopes.length === 5, 0);
  await first.stop();
  // No node listens, and no wake-up is sent.
  for (const session of sessions.slice(1)) await append(world, session, [status()], { isQuiet: true });
  const second = await listen({ cursor: first.cursor() });
  await world.advanceUntil(() => second.envelopes.length === 5, 0);
  // What was sent before the cursor's time is not sent again; the rest is, whether or not the client has it.
  expect(seqs(second.chunksOf(sessions[0]!))).toEqual([1]);
  for (const session of sessions.slice(1)) expect(seqs(second.chunksOf(session))).toEqual([1, 2]);
  await world.advanceUntil(() => new Date(second.cursor()).getTime() > start.getTime());
  const moved = second.cursor();
  await second.stop();
  await append(world, sessions[0]!, [status()], { isQuiet: true });
  const third = await listen({ cursor: moved });
  await world.advanceUntil(() => third.envelopes.length > 0, 0);
  expect(third.envelopes).toHaveLength(1);
  expect(seqs(third.chunksOf(sessions[0]!))).toEqual([2]);
});

test('very many sessions with more than fits one read arrive whole and in order, each session in turn', async () => {
  const sessions = await Promise.all(Array.from({ length: 60 }, () => world.session()));
  const cursor = world.clock.now().toISOString();
  const large = { ...(toolResult() as object), output: 'x'.repeat(60_000) } as unknown as ReturnType<typeof toolResult>;
  for (const session of sessions) {
    await append(world, session, [large, large, large], { isQuiet: true });
    await append(world, session, Array.from({ length: 150 }, toolResult), { isQuiet: true });
  }
  const listening = await listen({ cursor, types: 'tool.result' });
  const count = () => listening.envelopes.reduce((sum, { chunks }) => sum + chunks.length, 0);
  await world.advanceUntil(() => count() >= 60 * 153, 0);
  for (const session of sessions) expect(seqs(listening.chunksOf(session))).toEqual(upTo(153));
  expect(Math.max(...listening.envelopes.map(({ chunks }) => chunks.length))).toBeLessThanOrEqual(100);
  // The first envelopes are of different sessions.
  expect(new Set(listening.envelopes.slice(0, 15).map(({ sessionId }) => sessionId)).size).toBe(15);
});

test('nothing is read for a listener that takes nothing', async () => {
  const session = await world.session();
  const stream = await streamEnvironment(ctx, { env: 'production' });
  const over = new AbortController();
  const reading = partsOf(stream, over.signal);
  expect((await reading.next()).value?.json).toBe('');
  const reads = world.statementsLike(/from segments/);
  await append(world, session, [status()]);
  const next = reading.next();
  expect(JSON.parse(String((await next).value?.json))).toMatchObject({ chunks: [{ seq: 1 }] });
  const before = reads.count();
  expect(before).toBeGreaterThan(0);
  for (let n = 0; n < 10; n += 1) await append(world, session, [status()]);
  expect(reads.count()).toBe(before);
  over.abort();
  expect((await reading.next()).done).toBe(true);
});

test('a sweep reads the open sessions of its environment by their index, and no session that ended before', async () => {
  await world.db.query(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      created_at, updated_at, ended_at)
    select ${world.organizationId}, ('019aaaaa-0000-7000-8000-' || right(md5(n::text), 12))::uuid, ${world.organizationId},
      'production', 'completed', 1, 2, true, '{}', ${world.clock.now()}, ${world.clock.now()}, ${world.clock.now()}
    from generate_series(1, 20000) n on conflict do nothing`);
  await world.db.query(sql`analyze sessions`);
  await world.clock.advance(1_000);
  const session = await world.session();
  const cursor = world.clock.now().toISOString();
  await append(world, session, [status()], { isQuiet: true });
  const { db, statements } = listenTo(world.db);
  const environmentStreams = createEnvironmentStreams({ ...world.platform, db, live: ctx.live });
  const listening = await listen({ cursor }, { ...ctx, environmentStreams });
  await world.advanceUntil(() => listening.envelopes.length === 1, 0);
  await idle();
  // A page of open sessions, one of ended ones, and the three reads for the session.
  expect(statements).toHaveLength(5);
  for (const statement of statements) {
    const { rows, pages } = await costOf(world.db, statement);
    if (rows >= 20 || pages >= 100) throw new Error(`${rows} rows, ${pages} pages: ${statement.text}`);
  }
});

test('an organization has at most 20 listeners on a node, and one that leaves makes room', async () => {
  const listening = await Promise.all(Array.from({ length: 20 }, () => listen()));
  await expect(listen()).rejects.toMatchObject({ status: 429, code: 'rate_limited' });
  await listening[0]!.stop();
  await listen();
});

test('a cursor that is not a time and an unknown environment are refused, and a time to come counts as now', async () => {
  for (const cursor of ['turn_1:seq_1', '2026', 'tomorrow', '2026-99-01T00:00:00Z']) {
    await expect(listen({ cursor })).rejects.toMatchObject({ code: 'invalid_cursor' });
  }
  await expect(streamEnvironment(ctx, { env: 'nowhere' })).rejects.toMatchObject({ status: 404 });
  const listening = await listen({ cursor: '2999-01-01T00:00:00Z' });
  expect(listening.cursor()).toBe(world.clock.now().toISOString());
});

test('the oldest time that can be written gets everything there is', async () => {
  const session = await world.session();
  await append(world, session, [status()], { isQuiet: true });
  for (const cursor of ['0000-01-01T00:00:00Z', '1969-12-31T23:59:59Z']) {
    const listening = await listen({ cursor });
    await world.advanceUntil(() => listening.envelopes.length === 1, 0);
    // It is 1970, or follows the time already.
    expect(Date.parse(listening.cursor())).toBeGreaterThanOrEqual(0);
  }
});
