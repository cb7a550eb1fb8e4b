// Families of sessions under many concurrent events: users interrupt, steer, cancel, decide and send messages, on any node at any
// time, while nodes lose their leases. Whatever happens, in the end no session waits for something that never arrives.
//
// A seed fixes the actions, not their timing: repeat SEED=… of a failure several times.
import type { Chunk, Session } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { ApiError } from '../../src/lib/api-error.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { openFamily } from '../support/family.ts';
import { agentTool, answering, byModel, createWorld, httpTool, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const FAMILIES = 12;
const ACTIONS = 150;
// Far more polls than it needs; a session that is open then never ends.
const MAX_LOOKS = 10_000;
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function allSessions(): Promise<Session[]> {
  const all: Session[] = [];
  for (let cursor: string | undefined; ; ) {
    const { data, page } = await listSessions(world.ctx, { limit: 100, ...(cursor !== undefined && { cursor }) });
    all.push(...data);
    if (!page.hasMore) return all;
    cursor = page.nextCursor;
  }
}

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
test(`families finish whatever fails (SEED=${seed})`, async () => {
  const random = randomOf(seed);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  const ask = byModel({
    parent: answering([
      {
        calls: [
          ['helper', { input: 'a' }],
          ['helper', { input: 'b' }],
          ['pay', {}],
        ],
      },
      { calls: [['helper', { input: 'c' }]] },
      { text: 'Done' },
    ]),
    child: answering([
      {
        text: 'Hm',
        calls: [
          ['deeper', { input: 'help' }],
          ['pay', {}],
        ],
      },
      { text: 'Helped' },
    ]),
    grandchild: answering([{ calls: [['pay', {}]] }, { text: 'ok' }]),
  });
  const pay = httpTool('pay', { approval: 'always' });
  const run = async () => ({ output: 'paid' });
  const contexts: PoolContext[] = [world.ctx];
  const workers: string[] = [];
  const work = async () => {
    const platform = await world.anotherNode();
    contexts.push({ ...world.ctx, ...platform });
    workers.push((await world.work({ platform, ask, run })).nodeId);
  };
  await Promise.all([work(), work(), work()]);
  const grandchild = await world.agent([pay], { model: 'scripted/grandchild' });
  const families = await Promise.all(
    Array.from({ length: FAMILIES }, async () => {
      const maxSteps = pick([4, 6, 9, 30]);
      const childTools = [agentTool('deeper', grandchild), pay];
      return { maxSteps, root: await openFamily(world, { tools: [pay], childTools, open: { budget: { maxSteps } } }) };
    }),
  );

  /** Ignores refusals of requests that came too late. */
  const tolerant = async (act: Promise<unknown>) => {
    await act.catch((error) => {
      if (!(error instanceof ApiError)) throw error;
    });
  };
  async function decideSome(share: number): Promise<number> {
    const { data } = await listApprovals(world.ctx, { status: 'pending', limit: 100 });
    const chosen = data.filter(() => random() < share);
    await Promise.all(
      chosen.map(({ operationId }) =>
        tolerant(resolveApproval(pick(contexts), { operationId, decision: pick(['approved', 'approved', 'denied']) })),
      ),
    );
    return data.length;
  }

  const acting: Promise<unknown>[] = [];
  for (let n = 0; n < ACTIONS; n += 1) {
    for (let ticks = Math.floor(random() * 30); ticks > 0; ticks -= 1) await tick();
    const ctx = pick(contexts);
    const { sessionId } = pick(await allSessions());
    const acts = [
      () => interruptSession(ctx, { sessionId }),
      () => interruptSession(ctx, { sessionId }),
      () => cancelSession(ctx, { sessionId }),
      () => closeSession(ctx, { sessionId }),
      () => sendMessage(ctx, { sessionId, content: 'more', onBusy: 'steer' }),
      () => sendMessage(ctx, { sessionId, content: 'more' }),
      () => decideSome(0.5),
      () => decideSome(0.5),
      () => world.expireLease(pick(workers)),
    ];
    acting.push(tolerant(pick(acts)()));
  }
  await Promise.all(acting);

  // From here on everything is decided, and ends.
  for (let looks = 0; ; looks += 1) {
    await decideSome(1);
    const open = (await allSessions()).filter(({ status }) => status === 'running' || status === 'waiting');
    const due = await world.platform.db.query(sql`select 1 from sessions where parent_due`);
    if (open.length === 0 && due.length === 0) break;
    if (looks === MAX_LOOKS) expect([...open, ...due]).toEqual([]);
    await tick();
  }

  const sessions = await allSessions();
  expect(sessions.filter(({ parentSessionId, endedAt }) => parentSessionId !== null && endedAt === null)).toEqual([]);
  for (const { sessionId } of sessions) {
    const chunks = await world.chunks(sessionId);
    for (const turnChunks of Map.groupBy(chunks, ({ turn }) => turn).values()) {
      expect(turnChunks.map(({ seq }) => seq)).toEqual(turnChunks.map((_, index) => index + 1));
    }
    const idsOf = (type: 'tool.call' | 'tool.result') =>
      chunks.flatMap((chunk: Chunk) => (chunk.type === type ? [chunk.toolCallId] : []));
    expect(new Set(idsOf('tool.result')).size).toBe(idsOf('tool.result').length);
    // A cancelled session writes no more results of its calls; in every other, each call has its result.
    if (sessions.find((one) => one.sessionId === sessionId)!.status !== 'cancelled') {
      expect(idsOf('tool.result')).toEqual(expect.arrayContaining(idsOf('tool.call')));
    }
  }
  for (const { root, maxSteps } of families) {
    const family = sessions.filter((one) => rootOf(one, sessions) === root);
    expect(family.reduce((sum, { usage }) => sum + usage.steps, 0)).toBeLessThanOrEqual(maxSteps);
  }
  const unfinished = await world.platform.db.query(
    sql`select session_id, status from operations where finished_at is null`,
  );
  expect(unfinished).toEqual([]);
  const leftovers = await world.platform.db.query(sql`
    select session_id, stop, node_id from sessions where stop is not null or node_id is not null`);
  expect(leftovers).toEqual([]);
});

function rootOf(session: Session, all: readonly Session[]): string {
  let at = session;
  while (at.parentSessionId !== null) at = all.find(({ sessionId }) => sessionId === at.parentSessionId)!;
  return at.sessionId;
}
