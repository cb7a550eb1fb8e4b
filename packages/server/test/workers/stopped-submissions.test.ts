// What a worker's step used counts, also if its turn is stopped before a node has read the submission.
import type { Result } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cancelSession, interruptSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { getUsage } from '../../src/usage/usage.ts';
import { appendToWorkerTurn, claimWorkerTurn, completeWorkerTurn } from '../../src/workers/worker-turns.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createWorld, is, queryingBy, type World } from '../support/session-world.ts';

const TURN_SECONDS = 60;

let world: World;
let clock: ManualClock;
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock, prices: createPrices({ 'worker/priced': { inputUsd: 4, outputUsd: 4 } }) });
});
afterEach(() => world.close());

type WorkerTurn = NonNullable<Result<'claimWorkerTurn'>['workerTurn']>;

/** Opens a session whose step a worker has claimed. No node runs it. */
async function claimed(more: { queue?: string; session?: object } = {}): Promise<WorkerTurn> {
  const { queue = 'priced', session = {} } = more;
  const node = await world.work({});
  const agentId = await world.agent([], {
    model: { provider: 'worker', queue },
    limits: { turnTimeoutSeconds: TURN_SECONDS },
  });
  await world.open(agentId, session);
  const { workerTurn } = await claimWorkerTurn(world.ctx, { queue, waitSeconds: 10 });
  await node.stop();
  return workerTurn!;
}

const used = { inputTokens: 60, outputTokens: 40, cachedTokens: 10, cacheWriteTokens: 5 };
// 100 tokens at 4 dollars a million.
const counted = { ...used, steps: 1, costUsd: 0.0004 };

const submit = ({ workerTurnId }: WorkerTurn, more: object = {}) =>
  completeWorkerTurn(world.ctx, { workerTurnId, usage: used, ...more });

async function usageOf({ sessionId }: WorkerTurn) {
  const { session } = await getSession(world.ctx, { sessionId });
  const { data: turns } = await listTurns(world.ctx, { sessionId });
  const { total, data: models } = await getUsage(world.ctx, { groupBy: 'model' });
  const completed = (await world.chunks(sessionId)).find(({ type }) => type === 'turn.completed');
  return { session, turn: turns.at(-1)!, total, models, completed };
}

test.each([
  ['is interrupted', 'interrupted', (sessionId: string) => interruptSession(world.ctx, { sessionId })],
  ['times out', 'timedOut', async () => await clock.advance(TURN_SECONDS * 1000)],
] as const)('what a submitted step used counts if its turn %s before a node has it', async (_, stopReason, stop) => {
  const step = await claimed();
  await submit(step);
  await stop(step.sessionId);
  await world.work({});
  await world.until(step.sessionId, is('idle'));
  const { session, turn, total, models, completed } = await usageOf(step);
  expect(session).toMatchObject({ stopReason, usage: counted });
  expect(completed).toMatchObject({ stopReason, usage: counted });
  expect(turn).toMatchObject({
    usage: counted,
    operations: [{ kind: 'model', status: 'cancelled', name: 'worker/priced' }],
  });
  expect(total).toMatchObject(counted);
  expect(models).toMatchObject([{ group: 'worker/priced', ...counted }]);
});

test('what a submitted step used counts if its session is cancelled before a node has it', async () => {
  const step = await claimed();
  await submit(step);
  await cancelSession(world.ctx, { sessionId: step.sessionId });
  const { session, turn, total } = await usageOf(step);
  expect(session).toMatchObject({ status: 'cancelled', usage: counted });
  expect(turn).toMatchObject({ usage: counted });
  expect(total).toMatchObject(counted);
});

test('what a submitted step used counts if its turn is stopped while a node reads the submission', async () => {
  const step = await claimed();
  await appendToWorkerTurn(world.ctx, { workerTurnId: step.workerTurnId, deltas: ['Half a sent'] });
  await submit(step);
  const reading = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const platform = queryingBy(world.platform, async ({ text }, rows) => {
    if (!/from segments/.test(text) || rows.length === 0) return;
    reading.resolve();
    await stopped.promise;
  });
  await world.work({ platform });
  await reading.promise;
  // The node has read the submission and waits for its text, when its turn times out.
  await clock.advance(TURN_SECONDS * 1000);
  stopped.resolve();
  await world.until(step.sessionId, is('idle'));
  const { session, completed, total } = await usageOf(step);
  expect(session).toMatchObject({ stopReason: 'timedOut', usage: counted });
  expect(completed).toMatchObject({ usage: counted });
  expect(total).toMatchObject(counted);
});

test('what a stopped step used, and what it cost by its worker, uses up the budget of its session', async () => {
  const step = await claimed({ queue: 'unpriced', session: { budget: { maxTokens: 100 } } });
  await submit(step, { usage: { ...used, costUsd: 0.5 } });
  await interruptSession(world.ctx, { sessionId: step.sessionId });
  const node = await world.work({});
  await world.until(step.sessionId, is('idle'));
  await node.stop();
  await world.work({});
  await sendMessage(world.ctx, { sessionId: step.sessionId, content: 'again' });
  await world.until(step.sessionId, is('idle', 2));
  const { session } = await usageOf(step);
  expect(session).toMatchObject({ stopReason: 'budgetReached', usage: { ...counted, costUsd: 0.5 } });
});

test('what a step used that a message ends uses up the budget for the turn of that message', async () => {
  const step = await claimed({ queue: 'unpriced', session: { budget: { maxTokens: 100 } } });
  await submit(step);
  await sendMessage(world.ctx, { sessionId: step.sessionId, content: 'rather this', onBusy: 'steer' });
  await world.work({});
  await world.until(step.sessionId, is('idle'));
  const { session, completed } = await usageOf(step);
  expect(completed).toMatchObject({ stopReason: 'interrupted' });
  expect(session).toMatchObject({ turn: 2, stopReason: 'budgetReached', usage: { steps: 1, inputTokens: 60 } });
});

test('a step whose worker failed before it used anything is no step, also if its turn is stopped', async () => {
  const step = await claimed();
  await submit(step, { usage: undefined, error: { message: 'no model' } });
  await cancelSession(world.ctx, { sessionId: step.sessionId });
  const { session, total } = await usageOf(step);
  expect(session.usage).toMatchObject({ steps: 0, costUsd: null });
  expect(total).toMatchObject({ steps: 0 });
});

test('what a step used counts once if its turn is stopped after a node has it', async () => {
  const step = await claimed();
  await submit(step, { toolCalls: [{ tool: 'none', input: {} }] });
  await world.work({});
  const { workerTurn } = await claimWorkerTurn(world.ctx, { queue: 'priced', waitSeconds: 10 });
  expect(workerTurn).toMatchObject({ step: 2 });
  await interruptSession(world.ctx, { sessionId: step.sessionId });
  await world.until(step.sessionId, is('idle'));
  const { session, total } = await usageOf(step);
  expect(session).toMatchObject({ stopReason: 'interrupted', usage: counted });
  expect(total).toMatchObject(counted);
});
