// Limits of an environment for its models: calls beyond them wait in order, as rows, and none is refused.
//
// Only the tests move the clock, so no poll occurs that a test does not cause.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Input, Session } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listEnvironments, updateEnvironment } from '../../src/environments/environments.ts';
import { listEvents } from '../../src/events/events.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createAvailability } from '../../src/models/availability.ts';
import { createModelLimits, type ModelLimits } from '../../src/models/limits/model-limits.ts';
import { type AskModel, ModelFailure } from '../../src/models/model/model.ts';
import type { Platform } from '../../src/platform.ts';
import { runDue, runSchedule } from '../../src/schedules/run.ts';
import { createSchedule } from '../../src/schedules/schedules.ts';
import { cancelSession, interruptSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { getSession, openSession } from '../../src/sessions/sessions.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, httpTool, is, never, outline, type World } from '../support/session-world.ts';

let world: World;
let clock: ManualClock;
let stops: ModelLimits[];
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
  stops = [];
});
afterEach(async () => {
  await clock.passWhile(Promise.all(stops.map((limits) => limits.stop())));
  await clock.passWhile(world.close());
});

type Limits = NonNullable<Input<'updateEnvironment'>['modelLimits']>;
const limit = (...modelLimits: Limits) => updateEnvironment(world.ctx, { env: 'production', modelLimits });
const limitsNow = async () =>
  (await listEnvironments(world.ctx, {})).data.find(({ name }) => name === 'production')!.modelLimits;
const sessionOf = async (sessionId: string): Promise<Session> => (await getSession(world.ctx, { sessionId })).session;

/** A node that keeps to the limits. */
async function node(
  ask: AskModel,
  {
    platform = world.platform,
    wrap = (one: AskModel) => one,
  }: Partial<{ platform: Platform; wrap: (ask: AskModel) => AskModel }> = {},
) {
  const limits = createModelLimits(platform);
  stops.push(limits);
  await limits.start();
  const runner = await world.work({ platform, ask: wrap(limits.within(ask)), run: async () => ({ output: 'done' }) });
  return { ...runner, limits };
}

/** A provider that answers so many calls in a minute and refuses the others with 429. */
function provider(perMinute = Number.POSITIVE_INFINITY) {
  const made: { atMs: number; sessionId: string }[] = [];
  const ask: AskModel = async function* (call, signal) {
    const atMs = clock.now().getTime();
    made.push({ atMs, sessionId: call.sessionId });
    if (made.filter((one) => one.atMs > atMs - 60_000).length > perMinute)
      throw new ModelFailure('model_rate_limited', 'Too many requests.', { retryable: true, httpStatus: 429 });
    yield* answering([{ text: 'ok' }])({ ...call, callsBefore: 0 }, signal);
  };
  return { ask, made };
}

async function count(status: string): Promise<number> {
  const [row] = await world.platform.db.query<{ count: number }>(sql`
    select count(*)::integer as count from sessions where organization_id = ${world.organizationId} and status = ${status}`);
  return row!.count;
}
async function passUntilCount(status: string, wanted: number): Promise<void> {
  await clock.passUntil(async () => (await count(status)) === wanted);
}

async function open(agentId: string, times: number): Promise<string[]> {
  const sessionIds: string[] = [];
  for (let n = 0; n < times; n++) sessionIds.push(await world.open(agentId));
  return sessionIds;
}

test('two nodes share a limit: 200 calls at 60 a minute wait in order, all are made, and the provider refuses none', async () => {
  const { ask, made } = provider(60);
  await limit({ model: 'scripted/test', requestsPerMinute: 60 });
  await node(ask);
  await node(ask, { platform: await world.anotherNode() });
  const agentId = await world.agent();
  await open(agentId, 60);
  await passUntilCount('idle', 60);
  const since = clock.now();
  const waiting = await open(agentId, 140);
  await passUntilCount('waiting', 140);
  expect(made).toHaveLength(60);
  expect(await limitsNow()).toEqual([
    {
      model: 'scripted/test',
      requestsPerMinute: 60,
      tokensPerMinute: null,
      waiting: 140,
      waitingSince: since.toISOString(),
    },
  ]);
  // What waits is a row alone.
  expect(await world.platform.db.query(sql`select from sessions where node_id is not null`)).toEqual([]);

  await passUntilCount('idle', 200);
  expect(made).toHaveLength(200);
  const order = made.slice(60).map(({ sessionId }) => waiting.indexOf(sessionId));
  const minutes = [order.slice(0, 60), order.slice(60, 120), order.slice(120)];
  expect(minutes.map((one) => one.toSorted((a, b) => a - b))).toEqual([
    Array.from({ length: 60 }, (_, i) => i),
    Array.from({ length: 60 }, (_, i) => 60 + i),
    Array.from({ length: 20 }, (_, i) => 120 + i),
  ]);
  expect(made.at(-1)!.atMs - made[0]!.atMs).toBeLessThan(200_000);
  expect(await limitsNow()).toMatchObject([{ waiting: 0, waitingSince: null }]);
  expect(await world.platform.db.query(sql`select from model_limit_waits`)).toEqual([]);
});

test('calls that a person waits for go before those of schedules and of keys for no end user, which have every fifth turn', async () => {
  const { ask, made } = provider();
  await limit({ model: '*', requestsPerMinute: 5 });
  await node(ask);
  const agentId = await world.agent();
  const byKey = async (more: object = {}) => {
    const ctx = { ...world.ctx, keyId: newUuid() };
    return (await openSession(ctx, { agentId, environment: 'production', input: 'go', ...more })).session.sessionId;
  };
  const before = [await byKey(), ...(await open(agentId, 4))];
  await passUntilCount('idle', 5);

  const batch: string[] = [];
  for (let n = 0; n < 7; n++) batch.push(await byKey());
  const endUser = { id: 'customer' };
  const at = new Date(clock.now().getTime() + 1_000);
  const input = { agentId, environment: 'production', input: 'go', endUser, at: at.toISOString(), closeOnIdle: false };
  const { schedule } = await createSchedule(world.ctx, input);
  const scheduleId = uuidOf('sch', schedule.scheduleId);
  await clock.advance(1_000);
  const run = await runDue(world.platform, { organizationId: world.organizationId, scheduleId, nextAt: at });
  const scheduled = (run!.outcome as { sessionId: string }).sessionId;
  const manual = (await runSchedule(world.ctx, { scheduleId: schedule.scheduleId })).run.sessionId!;
  await passUntilCount('waiting', 9);
  // Its person waits from now on, and it began to wait before the others.
  await sendMessage(world.ctx, { sessionId: batch[6]!, content: 'And?', onBusy: 'queue' });
  const forEndUser = await byKey({ endUser });
  await sendMessage({ ...world.ctx, keyId: newUuid() }, { sessionId: before[0]!, content: 'more' });
  made.length = 0;
  await passUntilCount('idle', 15);
  const inTurn = made.map(({ sessionId }) => sessionId);
  const turns = [inTurn.slice(0, 5), inTurn.slice(5, 10)];
  const expected = [
    [batch[6]!, manual, forEndUser, before[0]!, batch[0]!],
    [batch[6]!, batch[1]!, batch[2]!, batch[3]!, batch[4]!],
  ];
  expect(turns.map((one) => one.toSorted())).toEqual(expected.map((one) => one.toSorted()));
  expect(inTurn.slice(10).toSorted()).toEqual([batch[5]!, scheduled].toSorted());
});

test('what a call has used counts although the database failed when it was to be stored', async () => {
  let failures = 0;
  const platform = await world.anotherNode({
    over: async (db) => ({
      ...db,
      transaction: async (run) =>
        failures-- > 0 ? Promise.reject(new Error('The database is away.')) : db.transaction(run),
    }),
  });
  const limits = createModelLimits(platform);
  stops.push(limits);
  const made: number[] = [];
  const ask: AskModel = async function* () {
    made.push(clock.now().getTime());
    yield { type: 'text', delta: 'ok' };
    // The look that would store what the first has used, and the next one.
    if (made.length === 1) failures = 2;
    yield { type: 'finish', reason: 'endTurn', usage: { inputTokens: 2_900, outputTokens: 50, cachedTokens: 0 } };
  };
  await limit({ model: '*', tokensPerMinute: 3_000 });
  await limits.start();
  await world.work({ ask: limits.within(ask) });
  const agentId = await world.agent();
  await world.open(agentId);
  await passUntilCount('idle', 1);
  await clock.passUntil(() => failures < 0);
  await world.open(agentId);
  await passUntilCount('idle', 2);
  expect(made[1]! - made[0]!).toBeGreaterThan(55_000);
});

describe('a session that waits for a limit', () => {
  let made: ReturnType<typeof provider>['made'];
  let sessionId: string;
  beforeEach(async () => {
    const model = provider();
    ({ made } = model);
    await limit({ model: 'scripted/test', requestsPerMinute: 1 });
    await node(model.ask);
    const agentId = await world.agent([], { limits: { turnTimeoutSeconds: 20, modelOutageSeconds: 0 } });
    await world.open(agentId);
    await passUntilCount('idle', 1);
    sessionId = await world.open(agentId);
    await passUntilCount('waiting', 1);
  });

  test('says so, has no event, and its turn’s time does not run', async () => {
    const { status, waitingFor } = await sessionOf(sessionId);
    expect(status).toBe('waiting');
    expect(waitingFor).toMatchObject({
      type: 'model',
      error: {
        code: 'model_limit_reached',
        message: 'The environment production has reached its limit for scripted/test: 1 request a minute',
      },
    });
    const { data: events } = await listEvents(world.ctx, { sessionId });
    expect(events.map(({ type }) => type)).not.toContain('session.waiting');
    const calledFrom = clock.now().getTime();
    await passUntilCount('idle', 2);
    expect(made.at(-1)!.atMs - calledFrom).toBeGreaterThan(30_000);
    expect(Date.parse(waitingFor!.retryAt!)).toBeGreaterThanOrEqual(made.at(-1)!.atMs);
    expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', usage: { steps: 1 } });
    expect(outline(await world.chunks(sessionId))).toEqual([
      'running',
      'waiting',
      'running',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
  });

  test('keeps its place when a message is queued, which has the next turn', async () => {
    await sendMessage(world.ctx, { sessionId, content: 'another', onBusy: 'queue' });
    await clock.advance(10_000);
    expect(made).toHaveLength(1);
    await clock.passWhile(world.until(sessionId, is('idle', 2)));
    expect(made).toHaveLength(3);
  });

  test.each([
    ['interrupted', interruptSession, 'idle'],
    ['cancelled', cancelSession, 'cancelled'],
  ] as const)('is %s at once, and takes nothing of the limit', async (_, stop, status) => {
    await stop(world.ctx, { sessionId });
    await world.until(sessionId, is(status));
    expect(await sessionOf(sessionId)).toMatchObject({ status, waitingFor: null });
    expect(await limitsNow()).toMatchObject([{ waiting: 0 }]);
    const next = await world.open(await world.agent());
    await clock.passWhile(world.until(next, is('idle')));
    expect(made.map((one) => one.sessionId)).not.toContain(sessionId);
    expect(made.at(-1)!.atMs - made[0]!.atMs).toBeLessThan(70_000);
    expect(await world.platform.db.query(sql`select from model_limit_waits`)).toEqual([]);
  });
});

test('a raised limit applies to the calls that wait, and a removed one lets all of them go, at once', async () => {
  const { ask, made } = provider();
  await limit({ model: '*', requestsPerMinute: 2 });
  await node(ask);
  await open(await world.agent(), 30);
  await passUntilCount('waiting', 28);
  const beganAt = clock.now().getTime();
  await limit({ model: '*', requestsPerMinute: 12 });
  await clock.passUntil(() => made.length === 12);
  await passUntilCount('waiting', 18);
  await limit();
  expect(await limitsNow()).toEqual([]);
  await passUntilCount('idle', 30);
  expect(clock.now().getTime() - beganAt).toBeLessThan(10_000);
  await clock.passUntil(async () => (await world.platform.db.query(sql`select from model_limits`)).length === 0);
});

test('what waits continues after every node was killed, with what had its turn and was not called yet', async () => {
  const { ask, made } = provider();
  await limit({ model: '*', requestsPerMinute: 2 });
  let isHanging = false;
  const itsClock = createManualClock();
  const hung = Promise.withResolvers<void>();
  const dying = await node(
    async function* (call, signal) {
      if (!isHanging) return yield* ask(call, signal);
      hung.resolve();
      await never(signal);
    },
    { platform: await world.anotherNode({ clock: itsClock }) },
  );
  const sessionIds = await open(await world.agent(), 5);
  await itsClock.passUntil(async () => (await count('waiting')) === 3);
  isHanging = true;
  await itsClock.passWhile(hung.promise);
  await itsClock.passWhile(dying.limits.stop());
  await world.expireLease(dying.nodeId);
  await clock.advance(itsClock.now().getTime() - clock.now().getTime());
  await node(ask);
  await passUntilCount('idle', 5);
  expect(new Set(made.map(({ sessionId }) => sessionId))).toEqual(new Set(sessionIds));
});

test('tokens: a call takes its estimate, what it used corrects that, and one that is larger than the limit is made alone', async () => {
  const made: number[] = [];
  const ask: AskModel = async function* (_call, _signal) {
    made.push(clock.now().getTime());
    yield { type: 'text', delta: 'ok' };
    yield { type: 'finish', reason: 'endTurn', usage: { inputTokens: 400, outputTokens: 100, cachedTokens: 0 } };
  };
  await limit({ model: '*', tokensPerMinute: 3_000 });
  await node(ask);
  const agentId = await world.agent();
  // About 1,010 are estimated for each, and 500 are used.
  for (const idle of [1, 2, 3]) {
    await world.open(agentId);
    await passUntilCount('idle', idle);
  }
  const quick = made.at(-1)! - made[0]!;
  await world.open(agentId, { input: 'x'.repeat(9_000) });
  await passUntilCount('waiting', 1);
  await passUntilCount('idle', 4);
  expect(quick).toBeLessThan(30_000);
  expect(made[3]! - made[2]!).toBeGreaterThanOrEqual(60_000 - quick);
});

test('each attempt and each step takes of the limit; an outage takes nothing, and no fallback replaces a call that waits', async () => {
  const calls: string[] = [];
  let isDown = false;
  const ask: AskModel = async function* (call, signal) {
    calls.push(call.config.model!);
    if (isDown) throw new ModelFailure('model_timeout', 'Too slow.', { retryable: true });
    const steps = [{ calls: [['pay', {}]] as [string, unknown][] }, { text: 'ok' }];
    yield* answering(steps)({ ...call, callsBefore: call.transcript.length > 1 ? 1 : 0 }, signal);
  };
  await limit({ model: 'scripted/test', requestsPerMinute: 3 });
  await node(ask, { wrap: createAvailability(clock) });
  const agentId = await world.agent([httpTool('pay')], {
    model: { provider: 'scripted', model: 'test', fallbacks: [{ provider: 'scripted', model: 'other' }] },
  });
  const first = await world.open(agentId);
  await clock.passWhile(world.until(first, is('idle')));
  const second = await world.open(agentId);
  await clock.passWhile(world.until(second, is('waiting')));
  expect(calls).toEqual(['test', 'test', 'test']);
  await clock.passWhile(world.until(second, is('idle')));
  expect(calls).toEqual(['test', 'test', 'test', 'test']);
  expect(await sessionOf(second)).toMatchObject({ usage: { steps: 2, toolCalls: 1 } });

  // The first call finds the outage, and takes one. The others are skipped, and their sessions use the fallback at once.
  isDown = true;
  await clock.pass(130_000);
  const later = await open(agentId, 1);
  await clock.passUntil(() => calls.length >= 6);
  isDown = false;
  await clock.passWhile(world.until(later[0]!, is('idle')));
  expect(calls.slice(4, 6)).toEqual(['test', 'other']);
});

describe('a limit for a model that its provider does not list', () => {
  const list = (...models: string[]): World['ctx'] => ({
    ...world.ctx,
    modelCatalog: {
      async list() {
        const unknown = {
          displayName: null,
          contextTokens: null,
          input: null,
          prices: null,
          endsAt: null,
          replacement: null,
        };
        const of = (model: string) => ({ model, ...unknown });
        const problem = models.length > 0 ? null : { code: 'model_key_missing', message: 'There is no key.' };
        return { models: models.map(of), problem, listedAt: clock.now().toISOString(), pricesDate: null };
      },
    },
  });
  const set = (ctx: World['ctx'], model: string) =>
    updateEnvironment(ctx, { env: 'production', modelLimits: [{ model, requestsPerMinute: 5 }] });

  test('is refused, with the name that was probably meant', async () => {
    await expect(set(list('gpt-6.1-terra', 'gpt-6.1-luna'), 'openai/gpt-6.1-tera')).rejects.toMatchObject({
      code: 'invalid_request',
      message:
        'modelLimits[0].model: is not a model of openai that the environment can call. Did you mean "openai/gpt-6.1-terra"?',
    });
    expect(await limitsNow()).toEqual([]);
  });

  test.each([
    ['the list names it with a date', 'anthropic/claude-sonnet-5-5', ['claude-sonnet-5-5-20260801']],
    ['Google’s collection is part of the name', 'google/models/gemini-3.8-flash', ['gemini-3.8-flash']],
    ['the list can’t be read', 'openai/gpt-6.1-tera', []],
    ['the provider has no list of its own', 'openai-compatible/llama', ['another']],
    ['an agent names it', 'openai/gpt-of-our-proxy', ['gpt-6.1-terra']],
    ['an agent names it as a fallback', 'anthropic/claude-of-our-proxy', ['claude-sonnet-5-5']],
  ])('is accepted if %s', async (_, model, models) => {
    const fallback = { provider: 'anthropic' as const, model: 'claude-of-our-proxy' };
    await world.agent([], { model: { provider: 'openai', model: 'gpt-of-our-proxy', fallbacks: [fallback] } });
    await set(list(...models), model);
    expect(await limitsNow()).toMatchObject([{ model }]);
  });
});

test('an environment without limits makes the same statements as a node that knows none', async () => {
  const statements: string[] = [];
  const record = (statement: unknown) => statements.push(statement as string);
  const run = async (ask: AskModel) => {
    const runner = await world.work({ ask });
    const agentId = await world.agent();
    const turn = async () => {
      const sessionId = await world.open(agentId, { environment: 'staging' });
      await clock.passWhile(world.until(sessionId, is('idle')));
    };
    await turn();
    statements.length = 0;
    await turn();
    // Without the searches of the node and what it reads now and then.
    const ofTurn = statements.filter((text) => !/get_byte|from budgets|from segments/.test(text)).toSorted();
    await runner.stop();
    return ofTurn;
  };
  subscribe('signalbox.statement', record);
  try {
    const { ask } = provider();
    const without = await run(ask);
    await limit({ model: '*', requestsPerMinute: 1 });
    const limits = createModelLimits(world.platform);
    stops.push(limits);
    await limits.start();
    expect(await run(limits.within(ask))).toEqual(without);
    expect(without.length).toBeGreaterThan(3);
  } finally {
    unsubscribe('signalbox.statement', record);
  }
});

test('a limit on a node that gets no hint applies within a minute', async () => {
  const { ask, made } = provider();
  await node(ask, { platform: await world.anotherNode() });
  await limit({ model: 'scripted/test', requestsPerMinute: 1 });
  await clock.pass(61_000);
  await open(await world.agent(), 2);
  await passUntilCount('waiting', 1);
  expect(made).toHaveLength(1);
});
