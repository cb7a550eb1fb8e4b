// Fallback models: when they are called, in which order, and what is recorded of them.
import type { Chunk, Model } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { openSession } from '../../src/sessions/sessions.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, httpTool, outline, usage, type World } from '../support/session-world.ts';

let world: World;
let clock: ManualClock;
beforeEach(async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  clock = createManualClock();
  const known = { contextTokens: null, input: null, price: { inputUsd: 2, outputUsd: 2 }, endsAt: null };
  const prices = createPrices(
    { 'scripted/first': { inputUsd: 1, outputUsd: 1 }, 'scripted/second': { inputUsd: 10, outputUsd: 10 } },
    { date: '2026-11-17', models: { 'openai/known': known } },
  );
  world = await createWorld({ clock, prices });
});
afterEach(async () => {
  await clock.passWhile(world.close());
  vi.restoreAllMocks();
});

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;
const ended = (chunk: Chunk) => chunk.type === 'turn.completed';
const ref = (model: string) => ({ provider: 'scripted' as const, model });
const model: Model = { ...ref('first'), fallbacks: [ref('second'), ref('third')] };

/** Records the models that are called, in order. */
function asking(models: Record<string, AskModel>): AskModel & { asked: string[]; calls: ModelCall[] } {
  const asked: string[] = [];
  const calls: ModelCall[] = [];
  const ask: AskModel = (call, signal) => {
    asked.push(call.config.model!);
    calls.push(structuredClone(call));
    return models[call.config.model!]!(call, signal);
  };
  return Object.assign(ask, { asked, calls });
}

function failing(error: Partial<ModelFailure> = {}): AskModel {
  // biome-ignore lint/correctness/useYield: it fails before it responds
  return async function* () {
    const { code = 'model_unavailable', retryable = true, httpStatus } = error;
    throw new ModelFailure(code, `It went wrong (${code}).`, {
      retryable,
      ...(httpStatus !== undefined && { httpStatus }),
    });
  };
}

test('a fallback responds without a wait, its text replaces what was shown, and it is recorded with its price', async () => {
  const shown = Promise.withResolvers<void>();
  const first: AskModel = async function* () {
    yield { type: 'text', delta: 'Hm' };
    await shown.promise;
    throw new ModelFailure('model_unavailable', 'It broke off.', { retryable: true });
  };
  const ask = asking({ first, second: answering([{ text: 'ok' }]) });
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { model }));
  await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
  shown.resolve();
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    '"Hm"',
    'message.reset 2',
    '"ok"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(ask.asked).toEqual(['first', 'second']);
  expect(ask.calls[1]!.config).toEqual(ref('second'));

  const { data: turns } = await listTurns(world.ctx, { sessionId });
  const costUsd = (10 * (usage.inputTokens + usage.outputTokens)) / 1e6;
  expect(turns[0]!.operations).toMatchObject([
    { name: 'scripted/second', status: 'succeeded', usage: { ...usage, costUsd } },
  ]);
  const broke = { code: 'model_unavailable', message: 'It broke off.' };
  expect(turns[0]!.operations[0]!.attempts).toMatchObject([
    { model: 'scripted/first', error: broke },
    { model: 'scripted/second', error: null },
  ]);
  expect(await world.platform.db.query(sql`select model from model_usage`)).toEqual([{ model: 'scripted/second' }]);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.at(-1)!.content).toEqual([{ type: 'text', text: 'ok' }]);
});

test.each([
  ['is rate limited', { code: 'model_rate_limited', httpStatus: 429 }],
  ['has no credit left', { code: 'model_rate_limited', retryable: false, httpStatus: 429 }],
  ['times out', { code: 'model_timeout' }],
  ['responds with 5xx', { code: 'model_unavailable', httpStatus: 503 }],
  ['does not follow its format', { code: 'model_protocol', retryable: false }],
  ['has no key', { code: 'model_not_allowed', retryable: false }],
  ['rejects the key', { code: 'model_rejected', retryable: false, httpStatus: 401 }],
  ['does not know the model', { code: 'model_rejected', retryable: false, httpStatus: 404 }],
])('a fallback responds if the provider %s', async (_, error) => {
  const ask = asking({ first: failing(error), second: failing(error), third: answering([{ text: 'ok' }]) });
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { model }));
  await world.until(sessionId, is('idle'));
  expect(ask.asked).toEqual(['first', 'second', 'third']);
});

test.each([
  ['rejects the request', { code: 'model_rejected', retryable: false, httpStatus: 400 }],
  ['finds the request too large', { code: 'model_rejected', retryable: false, httpStatus: 413 }],
  ['rejects the request in its stream', { code: 'model_rejected', retryable: false }],
])('no fallback is called if the provider %s', async (_, error) => {
  const ask = asking({ first: failing(error) });
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { model }));
  expect(await world.until(sessionId, ended)).toContainEqual(expect.objectContaining({ stopReason: 'error' }));
  expect(ask.asked).toEqual(['first']);
});

test('a fallback that rejects the request does not end the turn, which waits for the first model', async () => {
  let isDown = true;
  const ask = asking({
    first: (call, signal) => (isDown ? failing()(call, signal) : answering([{ text: 'ok' }])(call, signal)),
    second: failing({ code: 'model_rejected', retryable: false, httpStatus: 400 }),
    third: (call, signal) => {
      isDown = false;
      return failing({ code: 'model_key_rejected', retryable: false, httpStatus: 401 })(call, signal);
    },
  });
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], { model }));
  const chunks = await clock.passWhile(world.until(sessionId, ended));
  expect(chunks.find(ended)).toMatchObject({ stopReason: 'endTurn' });
  expect(ask.asked).toEqual(['first', 'second', 'third', 'first']);
});

test('the fallback that responded is called first for the rest of the turn, and the agent’s own model in the next turn', async () => {
  let isDown = true;
  const ask = asking({
    first: (call, signal) => (isDown ? failing()(call, signal) : answering([{ text: 'first' }])(call, signal)),
    second: async function* ({ transcript }) {
      const isAsked = transcript.at(-1)!.role === 'user';
      if (isAsked) yield { type: 'toolCall', name: 'look', input: {} };
      else yield { type: 'text', delta: 'done' };
      yield { type: 'finish', reason: isAsked ? 'toolCalls' : 'endTurn', usage };
    },
  });
  await world.work({ ask, run: async () => ({ output: 1 }) });
  const sessionId = await world.open(await world.agent([httpTool('look')], { model }));
  await world.until(sessionId, is('idle'));
  expect(ask.asked).toEqual(['first', 'second', 'second']);

  isDown = false;
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await world.until(sessionId, (chunk) => is('idle')(chunk) && chunk.turn === 2);
  expect(ask.asked).toEqual(['first', 'second', 'second', 'first']);
});

test('each model is called once before the first is called again', async () => {
  const ask = asking({ first: failing(), second: failing(), third: failing() });
  await world.work({ ask });
  await world.open(await world.agent([], { model }));
  const round = ['first', 'second', 'third'];
  for (const rounds of [1, 2, 3, 4, 5]) {
    await clock.passUntil(() => ask.asked.length >= 3 * rounds);
    expect(ask.asked).toEqual(Array.from({ length: rounds }, () => round).flat());
  }
});

test('a budget in money needs the price of every fallback', async () => {
  const agentId = await world.agent([], { model });
  const open = (budget: object) => openSession(world.ctx, { agentId, environment: 'production', input: 'go', budget });
  await expect(open({ maxCostUsd: 1 })).rejects.toMatchObject({
    code: 'budget_invalid',
    message: expect.stringContaining('scripted/third'),
  });
});

test('built-in prices are for the provider’s own server: a call of a gateway has no cost, and a budget in money is refused', async () => {
  const own = { provider: 'openai', model: 'known' } as const;
  const gateway = { ...own, baseUrl: 'https://gateway.example/v1' };
  let isDown = false;
  const ok = answering([{ text: 'ok' }]);
  const ask: AskModel = (call, signal) => (isDown && call.config.baseUrl ? failing() : ok)(call, signal);
  await world.work({ ask });
  const agentId = await world.agent([], { model: { ...gateway, fallbacks: [own] } });
  const sessionId = await world.open(agentId);
  await world.until(sessionId, is('idle'));
  isDown = true;
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await world.until(sessionId, (chunk) => is('idle')(chunk) && chunk.turn === 2);
  const { data: turns } = await listTurns(world.ctx, { sessionId });
  const costs = turns.toReversed().flatMap(({ operations }) => operations.map((one) => one.usage?.costUsd));
  expect(costs).toEqual([null, (2 * (usage.inputTokens + usage.outputTokens)) / 1e6]);

  const open = async (used: Model) =>
    openSession(world.ctx, {
      agentId: await world.agent([], { model: used }),
      environment: 'production',
      budget: { maxCostUsd: 1 },
    });
  await open(own);
  for (const used of [gateway, { ...own, fallbacks: [gateway] }, { ...own, compaction: gateway }])
    await expect(open(used)).rejects.toMatchObject({ code: 'budget_invalid' });
});

test('a definition is refused if a fallback is incomplete, may not be called, or belongs to a worker', async () => {
  const refused = (given: object) => world.agent([], { model: given as Model });
  await expect(
    refused({ ...ref('first'), fallbacks: [ref('second'), { provider: 'openai-compatible', model: 'x' }] }),
  ).rejects.toMatchObject({ message: expect.stringContaining('model.fallbacks[1].baseUrl') });
  await expect(
    refused({ ...ref('first'), fallbacks: [{ provider: 'openai', model: 'x', baseUrl: 'http://10.0.0.1/v1' }] }),
  ).rejects.toMatchObject({ code: 'url_not_allowed', message: expect.stringContaining('model.fallbacks[0].baseUrl') });
  await expect(refused({ provider: 'worker', queue: 'q', fallbacks: [ref('second')] })).rejects.toMatchObject({
    message: expect.stringContaining('model.fallbacks'),
  });
});
