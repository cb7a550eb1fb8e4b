// Failing model calls: which are retried, when, and what the session shows of them. What follows the quick retries is in
// outages.test.ts.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type AskModel, ModelFailure, type ModelFailureCode } from '../../src/models/model/model.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { idle } from '../support/idle.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, httpTool, is, outline, usage, type World } from '../support/session-world.ts';

let world: World;
let clock: ManualClock;
/** The durations of all sleeps so far, including current ones. */
let sleeps: number[];
beforeEach(async () => {
  // Fixes the jitter, so that no other sleep has the same duration.
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  sleeps = [];
  const manual = createManualClock();
  clock = {
    ...manual,
    sleep(ms, signal) {
      sleeps.push(ms);
      return manual.sleep(ms, signal);
    },
  };
  world = await createWorld({ clock });
});
afterEach(async () => {
  await world.close();
  vi.restoreAllMocks();
});

/** The turn fails after its quick retries. */
const impatient = { limits: { modelOutageSeconds: 0 } };
const waits = [563, 1_125, 2_250, 4_500];

function failure(code: ModelFailureCode, more: { retryable?: boolean; retryAfterMs?: number } = {}): ModelFailure {
  return new ModelFailure(code, `It went wrong (${code}).`, { retryable: true, ...more });
}

/** Fails this many times, showing the text each time, and then responds. */
function failing(times: number, error: ModelFailure, text = ''): AskModel & { asked: number } {
  const ask: AskModel & { asked: number } = Object.assign(
    async function* (...[call, signal]: Parameters<AskModel>): ReturnType<AskModel> {
      ask.asked += 1;
      if (ask.asked > times) return yield* answering([{ text: 'ok' }])({ ...call, callsBefore: 0 }, signal);
      if (text) yield { type: 'text', delta: text };
      throw error;
    },
    { asked: 0 },
  );
  return ask;
}

/** Waits until the service is idle, and expects that there have been this many sleeps of this duration. */
async function sleeping(ms: number, times = 1): Promise<void> {
  await idle();
  expect(sleeps.filter((slept) => slept === ms)).toHaveLength(times);
}

test.each<ModelFailureCode>(['model_timeout', 'model_rate_limited', 'model_unavailable', 'model_protocol'])(
  '%s is retried four times, after waits that double, and then fails the turn',
  async (code) => {
    const ask = failing(9, failure(code));
    await world.work({ ask });
    const sessionId = await world.open(await world.agent([], impatient));
    for (const [index, ms] of waits.entries()) {
      await sleeping(ms);
      expect(ask.asked).toBe(index + 1);
      await clock.advance(ms - 1);
      expect(ask.asked).toBe(index + 1);
      await clock.advance(1);
    }
    expect(outline(await world.until(sessionId, is('idle')))).toEqual(['running', 'turn.completed error', 'idle']);
    expect(ask.asked).toBe(5);
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session).toMatchObject({
      stopReason: 'error',
      error: { code, message: `It went wrong (${code}).` },
      usage: { steps: 0, inputTokens: 0, outputTokens: 0 },
    });
  },
);

test('a model call that succeeds at the last attempt has the same result as one that succeeds at once', async () => {
  const ask = failing(4, failure('model_unavailable'));
  await world.work({ ask });
  const sessionId = await world.open(await world.agent());
  for (const ms of waits) {
    await sleeping(ms);
    await clock.advance(ms);
  }
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    '"ok"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect((await getSession(world.ctx, { sessionId })).session.usage).toMatchObject({ ...usage, steps: 1 });
});

test('a retry waits as long as the provider asks for, and at least as long as the back-off', async () => {
  const ask = failing(1, failure('model_rate_limited', { retryAfterMs: 123_456 }));
  const node = await world.work({ ask });
  const sessionId = await world.open(await world.agent([], impatient));
  await sleeping(123_456);
  await clock.advance(123_455);
  expect(ask.asked).toBe(1);
  await clock.advance(1);
  await world.until(sessionId, is('idle'));
  await node.stop();

  await world.work({ ask: failing(1, failure('model_rate_limited', { retryAfterMs: 10 })) });
  const other = await world.open(await world.agent());
  await sleeping(waits[0]!);
  await clock.advance(waits[0]!);
  await world.until(other, is('idle'));
});

test('a wait beyond the deadline of the turn fails the turn at once, and the error says how long it would be', async () => {
  const ask = failing(9, failure('model_rate_limited', { retryAfterMs: 60_000 }));
  await world.work({ ask });
  const sessionId = await world.open(
    await world.agent([], { limits: { turnTimeoutSeconds: 60, modelOutageSeconds: 0 } }),
  );
  expect(outline(await world.until(sessionId, is('idle')))).toEqual(['running', 'turn.completed error', 'idle']);
  expect(ask.asked).toBe(1);
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session.error).toEqual({
    code: 'model_rate_limited',
    message:
      'It went wrong (model_rate_limited).; the provider asks for a wait of 60 seconds, but the turn has 60 left',
  });
});

test('an interrupt does not wait for the next attempt', async () => {
  const ask = failing(9, failure('model_unavailable'), 'Hm');
  await world.work({ ask });
  const sessionId = await world.open(await world.agent());
  await sleeping(waits[0]!);
  await interruptSession(world.ctx, { sessionId });
  await world.until(sessionId, is('idle'));
  expect(ask.asked).toBe(1);
  // The text of the failed attempt is void.
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ role }) => role)).toEqual(['user']);
});

test('each failure voids the text of its own step, and no other text', async () => {
  let shown = Promise.withResolvers<void>();
  let failures = 0;
  await world.work({
    ask: async function* (call, signal) {
      if (call.callsBefore === 0) {
        return yield* answering([{ text: 'Looking', calls: [['look', {}]] }])(call, signal);
      }
      yield { type: 'text', delta: `try ${failures}` };
      await shown.promise;
      shown = Promise.withResolvers();
      failures += 1;
      if (failures < 3) throw failure('model_unavailable');
      yield { type: 'finish', reason: 'endTurn', usage };
    },
    run: async () => ({ output: 1 }),
  });
  const sessionId = await world.open(await world.agent([httpTool('look')]));
  for (const n of [0, 1, 2]) {
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk' && chunk.delta === `try ${n}`);
    shown.resolve();
    if (n === 2) break;
    await sleeping(waits[n]!);
    await clock.advance(waits[n]!);
  }
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    '"Looking"',
    'tool.call',
    'tool.result',
    '"try 0"',
    'message.reset 7',
    '"try 1"',
    'message.reset 11',
    '"try 2"',
    'turn.completed endTurn',
    'idle',
  ]);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.at(-1)!.content).toEqual([{ type: 'text', text: 'try 2' }]);
});

test.each<ModelFailureCode>(['model_rejected', 'model_not_allowed', 'model_rate_limited', 'model_protocol'])(
  '%s that is not retryable fails the turn at once, with its message',
  async (code) => {
    const ask = failing(9, failure(code, { retryable: false }));
    await world.work({ ask });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, is('idle'));
    expect(ask.asked).toBe(1);
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session.error).toEqual({ code, message: `It went wrong (${code}).` });
  },
);

test('if a node dies between two attempts, another node makes the next, and earlier text stays void', async () => {
  const dying = await world.work({ ask: failing(9, failure('model_unavailable'), 'Hm') });
  const sessionId = await world.open(await world.agent());
  await sleeping(waits[0]!);
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), ask: answering([{ text: 'ok' }]) });
  await sleeping(waits[0]!, 2);
  await clock.advance(waits[0]!);
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks).slice(-3)).toEqual(['"ok"', 'turn.completed endTurn', 'idle']);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ content }) => content)).toEqual([[{ type: 'text', text: 'go' }], [{ type: 'text', text: 'ok' }]]);
});

test('a node that takes over a turn continues the count of attempts, and waits as long as the provider asked for', async () => {
  const first = failing(9, failure('model_rate_limited', { retryAfterMs: 31_000 }));
  const leaving = await world.work({ ask: first });
  const sessionId = await world.open(await world.agent([], impatient));
  for (const _ of [1, 2, 3]) {
    await sleeping(31_000);
    sleeps = [];
    await clock.advance(31_000);
  }
  await sleeping(31_000);
  await clock.advance(20_000);
  await leaving.stop();

  const second = failing(9, failure('model_unavailable'));
  await world.work({ platform: await world.anotherNode(), ask: second });
  await sleeping(11_000);
  expect(second.asked).toBe(0);
  await clock.advance(11_000);
  await world.until(sessionId, is('idle'));
  expect(second.asked).toBe(1);
});
