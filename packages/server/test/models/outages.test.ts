// Outages: a session whose models are unavailable is parked, and continues by itself.
//
// Only the tests move the clock, so no poll occurs that a test does not cause.
import type { Chunk, Session, WaitingFor } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { archiveAgent } from '../../src/agents/agents.ts';
import { listEvents } from '../../src/events/events.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createAvailability } from '../../src/models/availability.ts';
import { type AskModel, ModelFailure } from '../../src/models/model/model.ts';
import { createRecovery } from '../../src/models/recovery.ts';
import { wakeParked } from '../../src/session-rows/parked.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, httpTool, never, outline, usage, type World } from '../support/session-world.ts';

let world: World;
let clock: ManualClock;
beforeEach(async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterEach(async () => {
  await clock.passWhile(world.close());
  vi.restoreAllMocks();
});

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;
const ended = (chunk: Chunk) => chunk.type === 'turn.completed';
const down = (more: { retryAfterMs?: number } = {}) =>
  new ModelFailure('model_unavailable', 'The provider is down.', { retryable: true, ...more });

type Provider = AskModel & { asked: number; isDown: boolean /** Responds this often. */; answers(times: number): void };

/** A model that is unavailable until `isDown` is false. */
function provider(options: { error?: ModelFailure; text?: string } = {}): Provider {
  const { error = down(), text = '' } = options;
  let left = 0;
  const ask: Provider = Object.assign(
    async function* (...[call, signal]: Parameters<AskModel>): ReturnType<AskModel> {
      ask.asked += 1;
      left -= 1;
      if (!ask.isDown || left >= 0) return yield* answering([{ text: 'ok' }])({ ...call, callsBefore: 0 }, signal);
      if (text) yield { type: 'text', delta: text };
      throw error;
    },
    {
      asked: 0,
      isDown: true,
      answers(times: number) {
        left = times;
      },
    },
  );
  return ask;
}

async function sessionOf(sessionId: string): Promise<Session> {
  return (await getSession(world.ctx, { sessionId })).session;
}

/** Lets time pass until the session has been parked this many times. */
async function parked(sessionId: string, times = 1): Promise<Session & { waitingFor: WaitingFor }> {
  const count = (all: Chunk[]) => all.filter(is('waiting')).length;
  await clock.passWhile(world.until(sessionId, (_, all) => count(all) >= times));
  const session = await sessionOf(sessionId);
  expect(session).toMatchObject({ status: 'waiting', waitingFor: { type: 'model' } });
  return session as Session & { waitingFor: WaitingFor };
}

/** How long a session waits, from the commit that parked it. */
const waitMsOf = ({ waitingFor, updatedAt }: Session) => Date.parse(waitingFor!.retryAt!) - Date.parse(updatedAt);

/** Moves the clock to the next attempt, and not further. */
async function untilRetry(sessionId: string): Promise<void> {
  const { waitingFor } = await sessionOf(sessionId);
  await clock.advance(new Date(waitingFor!.retryAt!).getTime() - clock.now().getTime());
}

async function rowOf(sessionId: string) {
  const [row] = await world.platform.db.query<{ nodeId: string | null; leftMs: number; runnableAt: Date }>(sql`
    select node_id as "nodeId", turn_left_ms as "leftMs", runnable_at as "runnableAt" from sessions
    where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
  return row!;
}

test('after five quick attempts the session waits as a row, and continues by itself when the model is back', async () => {
  const ask = provider({ text: 'Hm' });
  await world.work({ ask });
  const sessionId = await world.open(await world.agent());
  const { waitingFor } = await parked(sessionId);
  expect(ask.asked).toBe(5);
  expect(waitingFor).toEqual({
    type: 'model',
    operationIds: [],
    toolCallIds: [],
    sessionIds: [],
    expiresAt: null,
    retryAt: expect.any(String),
    error: { code: 'model_unavailable', message: 'The provider is down.' },
  });
  const row = await rowOf(sessionId);
  expect(row).toMatchObject({ nodeId: null, runnableAt: new Date(waitingFor.retryAt!) });
  const { data: turns } = await listTurns(world.ctx, { sessionId });
  expect(turns[0]).toMatchObject({ status: 'waiting', operations: [{ kind: 'model', status: 'waiting' }] });

  ask.isDown = false;
  await untilRetry(sessionId);
  const chunks = await clock.passWhile(world.until(sessionId, is('idle')));
  expect(outline(chunks).slice(-5)).toEqual(['waiting', 'running', '"ok"', 'turn.completed endTurn', 'idle']);
  expect(ask.asked).toBe(6);
  expect(await sessionOf(sessionId)).toMatchObject({ turn: 1, waitingFor: null, usage: { ...usage, steps: 1 } });
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ content }) => content)).toEqual([[{ type: 'text', text: 'go' }], [{ type: 'text', text: 'ok' }]]);
});

test('a parked session makes one attempt at a time, after waits that double up to 5 minutes, and has one event', async () => {
  const ask = provider();
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { limits: { modelOutageSeconds: 3_600 } }));
  const waits: number[] = [];
  for (const times of [1, 2, 3, 4, 5, 6]) {
    const session = await parked(sessionId, times);
    expect(ask.asked).toBe(4 + times);
    waits.push(Math.round(waitMsOf(session) / 1000));
    await untilRetry(sessionId);
  }
  expect(waits).toEqual([15, 30, 60, 120, 150, 150]);
  const { data: events } = await listEvents(world.ctx, { sessionId });
  expect(events.filter(({ type }) => type === 'session.waiting')).toHaveLength(1);
});

test('jitter spreads sessions over as long as they wait at least', async () => {
  vi.mocked(Math.random).mockReturnValue(0.999);
  await world.work({ ask: provider() });
  const sessionId = await world.open(await world.agent());
  expect(Math.round(waitMsOf(await parked(sessionId)) / 1000)).toBe(30);
});

test('the turn fails with the last error once the agent’s models have been unavailable for as long as it waits', async () => {
  const ask = provider();
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { limits: { modelOutageSeconds: 40 } }));
  const since = Date.parse((await parked(sessionId, 1)).updatedAt);
  await untilRetry(sessionId);
  const { waitingFor } = await parked(sessionId, 2);
  // The last attempt is at the end of the time, not after it.
  expect(Math.round((Date.parse(waitingFor.retryAt!) - since) / 1000)).toBe(40);
  await untilRetry(sessionId);
  const chunks = await clock.passWhile(world.until(sessionId, ended));
  expect(chunks.find(ended)).toMatchObject({ stopReason: 'error' });
  expect(ask.asked).toBe(7);
  expect((await sessionOf(sessionId)).error).toEqual({ code: 'model_unavailable', message: 'The provider is down.' });
});

test('with modelOutageSeconds 0 the turn fails after its quick attempts', async () => {
  const ask = provider();
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { limits: { modelOutageSeconds: 0 } }));
  const chunks = await clock.passWhile(world.until(sessionId, ended));
  expect(chunks.some(is('waiting'))).toBe(false);
  expect(ask.asked).toBe(5);
});

test('a failure that a retry can’t change is not waited for', async () => {
  const ask = provider({
    error: new ModelFailure('model_rejected', 'Wrong key.', { retryable: false, httpStatus: 401 }),
  });
  await world.work({ ask });
  const sessionId = await world.open(await world.agent());
  const chunks = await clock.passWhile(world.until(sessionId, ended));
  expect(chunks.some(is('waiting'))).toBe(false);
  expect(ask.asked).toBe(1);
});

describe('Retry-After', () => {
  test('parks the session at once if it is long, and is respected', async () => {
    const ask = provider({ error: down({ retryAfterMs: 60_000 }) });
    await world.work({ ask });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, is('waiting'));
    expect(ask.asked).toBe(1);
    expect(waitMsOf(await sessionOf(sessionId))).toBe(60_000);
  });

  test('fails the turn if it is longer than the agent waits, and says so', async () => {
    await world.work({ ask: provider({ error: down({ retryAfterMs: 901_000 }) }) });
    const sessionId = await world.open(await world.agent());
    await clock.passWhile(world.until(sessionId, ended));
    expect((await sessionOf(sessionId)).error).toEqual({
      code: 'model_unavailable',
      message: 'The provider is down.; the provider asks for a wait of 901 seconds, but the session waits 900 at most',
    });
  });
});

test('the turn’s time does not run while it is parked', async () => {
  const ask = provider();
  await world.work({ ask });
  const sessionId = await world.open(
    await world.agent([], { limits: { turnTimeoutSeconds: 20, modelOutageSeconds: 3_600 } }),
  );
  for (const times of [1, 2, 3]) {
    await parked(sessionId, times);
    expect((await rowOf(sessionId)).leftMs).toBeGreaterThan(5_000);
    if (times === 3) ask.isDown = false;
    await untilRetry(sessionId);
  }
  const chunks = await clock.passWhile(world.until(sessionId, ended));
  expect(chunks.find(ended)).toMatchObject({ stopReason: 'endTurn' });
});

test('a step that finished before the outage is not repeated', async () => {
  const ask = provider();
  let ran = 0;
  await world.work({
    ask: (call, signal) =>
      call.callsBefore === 0 ? answering([{ calls: [['pay', {}]] }])(call, signal) : ask(call, signal),
    run: async () => {
      ran += 1;
      return { output: 'paid' };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('pay')]));
  await parked(sessionId);
  ask.isDown = false;
  await untilRetry(sessionId);
  await clock.passWhile(world.until(sessionId, is('idle')));
  expect(ran).toBe(1);
});

describe('a parked session', () => {
  let ask: ReturnType<typeof provider>;
  let sessionId: string;
  let agentId: string;
  beforeEach(async () => {
    ask = provider();
    await world.work({ ask });
    agentId = await world.agent();
    sessionId = await world.open(agentId);
    await parked(sessionId);
    ask.isDown = false;
  });
  const send = (onBusy: 'queue' | 'steer' | 'reject') =>
    sendMessage(world.ctx, { sessionId, content: 'another', onBusy });

  test('calls its models at once for a queued message, which has the turn after the current one', async () => {
    await send('queue');
    const chunks = await clock.passWhile(world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk)));
    expect(chunks.filter(ended)).toMatchObject([
      { turn: 1, stopReason: 'endTurn' },
      { turn: 2, stopReason: 'endTurn' },
    ]);
  });

  test('begins the turn of a steering message at once', async () => {
    await send('steer');
    const chunks = await clock.passWhile(world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk)));
    expect(chunks.filter(ended)).toMatchObject([
      { turn: 1, stopReason: 'interrupted' },
      { turn: 2, stopReason: 'endTurn' },
    ]);
  });

  test('refuses a message that may not wait', async () => {
    await expect(send('reject')).rejects.toMatchObject({ code: 'session_busy' });
  });

  test('ends its turn when it is interrupted', async () => {
    await interruptSession(world.ctx, { sessionId });
    await clock.passWhile(world.until(sessionId, is('idle')));
    expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'interrupted', waitingFor: null });
  });

  test('finishes its turn after it was closed, and is then completed', async () => {
    await closeSession(world.ctx, { sessionId });
    await untilRetry(sessionId);
    await clock.passWhile(world.until(sessionId, is('completed')));
    expect(outline(await world.chunks(sessionId))).toContain('"ok"');
  });

  test('is cancelled at once, and no node claims it any more', async () => {
    await cancelSession(world.ctx, { sessionId });
    expect(await sessionOf(sessionId)).toMatchObject({ status: 'cancelled', waitingFor: null });
    expect((await rowOf(sessionId)).runnableAt).toBeNull();
  });

  test('finishes its turn if its agent was archived meanwhile', async () => {
    await archiveAgent(world.ctx, { agentId });
    await untilRetry(sessionId);
    await clock.passWhile(world.until(sessionId, is('idle')));
  });
});

test('500 sessions that lose their model together make few calls during the outage, and all continue within 30 s after it', async () => {
  vi.mocked(Math.random).mockRestore();
  const model = provider();
  const other = await world.anotherNode();
  // Each node has found out by itself that the model is down.
  for (const platform of [world.platform, other])
    await world.work({ platform, ask: createAvailability(clock, createRecovery(platform))(model) });
  const agentId = await world.agent();
  await Promise.all(Array.from({ length: 500 }, () => world.open(agentId)));
  const count = async (status: string) => {
    const [row] = await world.platform.db.query<{ count: number }>(sql`
      select count(*)::integer as count from sessions
      where organization_id = ${world.organizationId} and status = ${status}`);
    return row!.count;
  };
  await clock.passUntil(async () => (await count('waiting')) === 500);
  const startedWith = model.asked;
  expect(await world.platform.db.query(sql`select node_id from sessions where node_id is not null`)).toEqual([]);

  const since = clock.now().getTime();
  await clock.passUntil(() => clock.now().getTime() - since > 300_000);
  // The other node finds out by five calls; then each makes one after each pause of 15 to 120 seconds, not one of each session.
  expect(model.asked - startedWith).toBeLessThan(30);

  model.isDown = false;
  const backAt = clock.now().getTime();
  const asked = model.asked;
  // The first session is a person's.
  await world.open(agentId);
  await clock.passUntil(async () => (await count('idle')) === 501);
  expect(clock.now().getTime() - backAt).toBeLessThanOrEqual(30_000);
  expect(model.asked - asked).toBe(501);
  const used = await world.platform.db.query<{ steps: number; turn: number }>(sql`
    select distinct steps, turn from sessions where organization_id = ${world.organizationId}`);
  expect(used).toEqual([{ steps: 1, turn: 1 }]);
}, 120_000);

describe('a response after an outage wakes', () => {
  const of = (model: string, more: object = {}) => ({ provider: 'scripted' as const, model, ...more });
  const config = { provider: 'scripted' as const, model: 'test' };
  const wake = (limit: number, environment = 'production') =>
    wakeParked(world.platform.db, { organizationId: world.organizationId, environment, config }, limit, clock.now());

  test('sessions that wait for its model, as its own or as a fallback, and no others', async () => {
    const limited = new ModelFailure('model_rate_limited', 'Slow down.', { retryable: true, retryAfterMs: 60_000 });
    const [unavailable, busy] = [provider(), provider({ error: limited })];
    await world.work({ ask: (call, signal) => (call.config.model === 'busy' ? busy : unavailable)(call, signal) });
    const own = await world.open(await world.agent());
    const fallback = await world.open(await world.agent([], { model: of('other', { fallbacks: [of('test')] }) }));
    const others = [
      await world.open(await world.agent([], { model: of('other') })),
      await world.open(await world.agent([], { model: of('test', { fallbacks: [of('busy')] }) })),
      await world.open(await world.agent(), { environment: 'staging' }),
    ];
    for (const sessionId of [own, fallback, ...others]) await parked(sessionId);
    expect(
      await wakeParked(
        world.platform.db,
        { organizationId: newUuid(), environment: 'production', config },
        9,
        clock.now(),
      ),
    ).toEqual([]);
    expect(await wake(9, 'nowhere')).toEqual([]);
    const [first, ...more] = [...(await wake(1)), ...(await wake(9)), ...(await wake(9))];
    expect([first, ...more].toSorted()).toEqual([uuidOf('ses', own), uuidOf('ses', fallback)].toSorted());
    expect((await rowOf(own)).runnableAt).toEqual(clock.now());
  });

  test('two sessions, and no more of them once the model fails again', async () => {
    const model = provider();
    await world.work({ ask: createAvailability(clock, createRecovery(world.platform))(model) });
    const agentId = await world.agent();
    const sessionIds = await Promise.all(Array.from({ length: 9 }, () => world.open(agentId)));
    for (const sessionId of sessionIds) await parked(sessionId);
    const asked = model.asked;
    await clock.advance(1_000);
    // It responds once.
    model.answers(1);
    await world.open(agentId);
    await clock.advance(0);
    await clock.advance(20);
    expect(model.asked - asked).toBe(3);
  });
});

describe('with a model that the node knows to be down, once it is back', () => {
  let ask: ReturnType<typeof provider>;
  let parkedId: string;
  beforeEach(async () => {
    ask = provider();
    await world.work({ ask: createAvailability(clock)(ask) });
    parkedId = await world.open(await world.agent());
    await parked(parkedId);
    ask.isDown = false;
    await clock.advance(1_000);
  });
  const responds = async (sessionId: string, turn = 1) => {
    const since = clock.now().getTime();
    await clock.passWhile(world.until(sessionId, (chunk) => chunk.turn === turn && is('idle')(chunk)));
    expect(clock.now().getTime() - since).toBeLessThanOrEqual(2_000);
    expect(outline(await world.chunks(sessionId))).toContain('"ok"');
  };

  test('a new session has a response at once', async () => {
    await responds(await world.open(await world.agent()));
  });

  test('so has a message that is queued in a parked session', async () => {
    await sendMessage(world.ctx, { sessionId: parkedId, content: 'Are you there?' });
    await responds(parkedId, 2);
  });

  test('so has a turn that failed because its agent does not wait, and is retried', async () => {
    ask.isDown = true;
    const sessionId = await world.open(await world.agent([], { limits: { modelOutageSeconds: 0 } }));
    await clock.passWhile(world.until(sessionId, is('idle')));
    const asked = ask.asked;
    ask.isDown = false;
    await clock.advance(1_000);
    await retrySession(world.ctx, { sessionId });
    await clock.passWhile(world.until(sessionId, (chunk) => chunk.type === 'message.chunk'));
    expect(ask.asked).toBe(asked + 1);
  });

  test('a fallback that responds is called instead of a trial', async () => {
    const model = {
      provider: 'scripted' as const,
      model: 'test',
      fallbacks: [{ provider: 'scripted' as const, model: 'b' }],
    };
    const asked = ask.asked;
    await responds(await world.open(await world.agent([], { model })));
    expect(ask.asked).toBe(asked + 1);
  });
});

describe('nodes', () => {
  test('another node continues the session after the one that parked it has gone', async () => {
    const gone = await world.work({ ask: provider() });
    const sessionId = await world.open(await world.agent());
    await parked(sessionId);
    await clock.passWhile(gone.stop());
    await world.work({ platform: await world.anotherNode(), ask: answering([{ text: 'ok' }]) });
    await untilRetry(sessionId);
    expect(outline(await clock.passWhile(world.until(sessionId, is('idle')))).slice(-3)).toEqual([
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
  });

  test('of two nodes, one makes each attempt', async () => {
    const ask = provider();
    await world.work({ ask });
    await world.work({ platform: await world.anotherNode(), ask });
    const sessionId = await world.open(await world.agent());
    for (const times of [1, 2, 3]) {
      await parked(sessionId, times);
      expect(ask.asked).toBe(4 + times);
      await untilRetry(sessionId);
    }
  });

  test('a node that dies during an attempt leaves it to another, which keeps the time of the outage', async () => {
    const ask = provider();
    let isHanging = false;
    const asked = Promise.withResolvers<void>();
    // Its time stops with it, so it does not renew its lease any more.
    const itsClock = createManualClock();
    const dying = await world.work({
      platform: await world.anotherNode({ clock: itsClock }),
      ask: async function* (call, signal) {
        if (!isHanging) return yield* ask(call, signal);
        asked.resolve();
        await never(signal);
      },
    });
    const hanging = itsClock.passWhile(asked.promise);
    const sessionId = await world.open(await world.agent());
    const since = () =>
      world.platform.db.query<{ since: Date; failures: number }>(sql`
        select unavailable_since as since, failures from operations
        where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
    await parked(sessionId);
    const [before] = await since();
    isHanging = true;
    await untilRetry(sessionId);
    await clock.passWhile(hanging);
    await new Promise<void>((resolve) => setImmediate(resolve)); // a renewal that has begun
    await world.expireLease(dying.nodeId);
    await world.work({ platform: await world.anotherNode(), ask });
    await parked(sessionId, 2);
    expect(await since()).toEqual([{ since: before!.since, failures: 6 }]);
    ask.isDown = false;
    await untilRetry(sessionId);
    await clock.passWhile(world.until(sessionId, is('idle')));
  });
});
