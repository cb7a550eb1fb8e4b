// Budgets: what a session may use in all its turns and with all its children, checked before each model call.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { updateAgent } from '../../src/agents/agents.ts';
import { closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { getSession, openSession } from '../../src/sessions/sessions.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { childOf, childrenOf, openFamily } from '../support/family.ts';
import {
  agentTool,
  answering,
  byModel,
  createWorld,
  hanging,
  httpTool,
  is,
  outline,
  usage,
  type World,
} from '../support/session-world.ts';

// A call of the worlds' models costs 0.00002 dollars: 5 tokens at 4 dollars a million.
const CALL_USD = 0.00002;
const prices = createPrices({
  'scripted/test': { inputUsd: 4, outputUsd: 4 },
  'scripted/parent': { inputUsd: 4, outputUsd: 4 },
});
let world: World;
beforeEach(async () => {
  world = await createWorld({ prices });
});
afterEach(() => world.close());

const endless = answering([{ calls: [['again', {}]] }]);
const helper: [string, unknown] = ['helper', { input: 'help' }];

async function sessionOf(sessionId: string) {
  return (await getSession(world.ctx, { sessionId })).session;
}

async function errorsOf(sessionId: string): Promise<unknown[]> {
  const { data } = await listMessages(world.ctx, { sessionId });
  return data.flatMap(({ content }) => content).flatMap((part) => (part.type === 'tool_result' ? [part.error] : []));
}

test.each([
  ['tokens', { maxTokens: 11 }, 3],
  ['tokens, to the last one,', { maxTokens: 10 }, 2],
  ['steps', { maxSteps: 3 }, 3],
  ['money', { maxCostUsd: 2.5 * CALL_USD }, 3],
  ['money, to the last cent,', { maxCostUsd: 2 * CALL_USD }, 2],
  ['tokens, steps or money, whichever first,', { maxTokens: 1_000, maxSteps: 2, maxCostUsd: 1 }, 2],
])('a turn makes no further call once its budget of %s is used up', async (_, budget, steps) => {
  await world.work({ ask: endless });
  const sessionId = await world.open(await world.agent([httpTool('again')]), { budget });
  expect(outline(await world.until(sessionId, is('idle'))).slice(-2)).toEqual(['turn.completed budgetReached', 'idle']);
  expect(await sessionOf(sessionId)).toMatchObject({ budget, stopReason: 'budgetReached', usage: { steps } });
});

test('a budget is for all turns: once it is used up, a message gets no response', async () => {
  let asked = 0;
  await world.work({
    ask: answering([{ text: 'ok' }], () => {
      asked += 1;
    }),
  });
  const sessionId = await world.open(await world.agent(), { budget: { maxSteps: 2 } });
  await world.until(sessionId, is('idle', 1));
  await sendMessage(world.ctx, { sessionId, content: 'second' });
  await world.until(sessionId, is('idle', 2));
  await sendMessage(world.ctx, { sessionId, content: 'third' });
  const chunks = await world.until(sessionId, is('idle', 3));
  expect(outline(chunks.filter(({ turn }) => turn === 3))).toEqual(['running', 'turn.completed budgetReached', 'idle']);
  expect(asked).toBe(2);
  expect((await closeSession(world.ctx, { sessionId })).session.status).toBe('completed');
});

test('a turn that ends before its model call leaves no unfinished model call behind', async () => {
  await world.work({ ask: endless });
  const sessionId = await world.open(await world.agent([httpTool('again')]), { budget: { maxSteps: 1 } });
  await world.until(sessionId, is('idle'));
  expect(await world.platform.db.query(sql`select 1 from operations where finished_at is null`)).toEqual([]);
});

// ── Children ─────────────────────────────────────────────────────────────────────────────────────────────────────────

test('a child uses its parent’s budget, and its parent gets an error when the budget is used up', async () => {
  await world.work({ ask: byModel({ parent: answering([{ calls: [helper] }, { text: 'Done' }]), child: endless }) });
  const budget = { maxSteps: 4 };
  const sessionId = await openFamily(world, { childTools: [httpTool('again')], open: { budget } });
  await world.until(sessionId, is('idle'));
  expect(await childOf(world, sessionId)).toMatchObject({
    budget,
    status: 'completed',
    stopReason: 'budgetReached',
    usage: { steps: 3 },
  });
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 1 } });
  expect(await errorsOf(sessionId)).toEqual(['The agent stopped before it finished: the budget is used up.']);
});

test('the usage of children of earlier turns counts on a node that never ran them', async () => {
  const ask = byModel({
    parent: answering([{ calls: [helper] }, { text: 'Done' }, { text: 'Again' }]),
    child: answering([{ text: 'ok' }]),
  });
  const first = await world.work({ ask });
  const sessionId = await openFamily(world, { open: { budget: { maxTokens: 15 } } });
  await world.until(sessionId, is('idle'));
  await first.stop();
  await world.work({ ask });
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await world.until(sessionId, is('idle', 2));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 2 } });
});

test('simultaneous children on two nodes never exceed the budget of steps together', async () => {
  const calls = Array.from({ length: 8 }, () => helper);
  const ask = byModel({ parent: answering([{ calls }, { text: 'Done' }]), child: endless });
  await world.work({ platform: await world.anotherNode(), ask });
  await world.work({ platform: await world.anotherNode(), ask });
  const families = await Promise.all(
    [5, 9, 17].map(async (maxSteps) => {
      const sessionId = await openFamily(world, { childTools: [httpTool('again')], open: { budget: { maxSteps } } });
      return { maxSteps, sessionId };
    }),
  );
  for (const { maxSteps, sessionId } of families) {
    await world.until(sessionId, is('idle'));
    const sessions = [await sessionOf(sessionId), ...(await childrenOf(world, sessionId, calls.length))];
    expect(sessions.reduce((sum, one) => sum + one.usage.steps, 0)).toBe(maxSteps);
    expect(sessions.map(({ stopReason }) => stopReason)).toEqual(sessions.map(() => 'budgetReached'));
  }
});

test('a model call that is repeated after the death of its node counts as one step', async () => {
  const begun = Promise.withResolvers<void>();
  const parent = answering([{ calls: [helper] }, { text: 'Done' }]);
  const dying = await world.work({ ask: byModel({ parent, child: hanging('Hm', begun.resolve) }) });
  const sessionId = await openFamily(world, { open: { budget: { maxSteps: 2 } } });
  await begun.promise;
  await world.expireLease(dying.nodeId);
  const child = answering([{ text: 'ok' }]);
  await world.work({ platform: await world.anotherNode(), ask: byModel({ parent, child }) });
  await world.until(sessionId, is('idle'));
  expect(await childOf(world, sessionId)).toMatchObject({ stopReason: 'endTurn', usage: { steps: 1 } });
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 1 } });
});

test('an interrupted model call is not a step, so the next call may use it', async () => {
  const begun = Promise.withResolvers<void>();
  await world.work({
    ask: byModel({
      parent: answering([{ calls: [helper] }, { text: 'Done' }]),
      child: hanging('Hm', begun.resolve),
    }),
  });
  const sessionId = await openFamily(world, { open: { budget: { maxSteps: 2 } } });
  await begun.promise;
  const { sessionId: childId } = await childOf(world, sessionId);
  await interruptSession(world.ctx, { sessionId: childId });
  await world.until(sessionId, is('idle'));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', usage: { steps: 2 } });
});

test('the budget of the root applies to every session below it', async () => {
  const grandchildAgent = await world.agent([httpTool('again')], { model: 'scripted/grandchild' });
  await world.work({
    ask: byModel({
      parent: answering([{ calls: [helper] }, { text: 'Done' }]),
      child: answering([{ calls: [['deeper', { input: 'help' }]] }, { text: 'ok' }]),
      grandchild: endless,
    }),
  });
  const childTools = [agentTool('deeper', grandchildAgent)];
  const sessionId = await openFamily(world, { childTools, open: { budget: { maxTokens: 25 } } });
  await world.until(sessionId, is('idle'));
  const { data } = await listSessions(world.ctx, {});
  expect(data.reduce((sum, one) => sum + one.usage.inputTokens + one.usage.outputTokens, 0)).toBe(25);
  expect(data.map(({ stopReason }) => stopReason)).toEqual(Array.from({ length: 3 }, () => 'budgetReached'));
});

// ── Prices ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const budget = { maxCostUsd: 1 };

test('a budget in money is refused for a model without a price', async () => {
  const agentId = await world.agent([], { model: 'scripted/unpriced' });
  const open = (more: object) => openSession(world.ctx, { agentId, environment: 'production', budget, ...more });
  await expect(open({})).rejects.toMatchObject({
    code: 'budget_invalid',
    errors: [{ path: 'budget.maxCostUsd', message: 'needs a configured price for scripted/unpriced' }],
  });
  await updateAgent(world.ctx, { agentId, model: 'scripted/test' });
  await open({});
  await expect(open({ agentVersion: 1 })).rejects.toMatchObject({ code: 'budget_invalid' });
  await open({ agentVersion: 2 });
});

test('a session with a budget in money has no child whose model has no price', async () => {
  await world.work({ ask: byModel({ parent: answering([{ calls: [helper] }, { text: 'Done' }]) }) });
  const sessionId = await openFamily(world, { open: { budget } });
  await world.until(sessionId, is('idle'));
  expect((await listSessions(world.ctx, { parentSessionId: sessionId })).data).toEqual([]);
  expect(await errorsOf(sessionId)).toEqual(['The budget is in money, and the model of this agent has no price.']);
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn' });
});

test('a message is refused while the agent’s model has no price, and the session loses nothing', async () => {
  await world.work({ ask: answering([{ text: 'ok' }]) });
  const agentId = await world.agent();
  const sessionId = await world.open(agentId, { budget });
  await world.until(sessionId, is('idle', 1));
  await updateAgent(world.ctx, { agentId, model: 'scripted/unpriced' });
  const say = () => sendMessage(world.ctx, { sessionId, content: 'again' });
  await expect(say()).rejects.toMatchObject({ code: 'budget_invalid' });
  await updateAgent(world.ctx, { agentId, model: 'scripted/test' });
  await say();
  await world.until(sessionId, is('idle', 2));
});

test('the turn of a queued message fails without a model call if its agent’s new model has no price', async () => {
  const hold = Promise.withResolvers<void>();
  const asked: string[] = [];
  await world.work({
    ask: async function* ({ config }) {
      asked.push(config.model!);
      await hold.promise;
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const agentId = await world.agent();
  const sessionId = await world.open(agentId, { budget });
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await updateAgent(world.ctx, { agentId, model: 'scripted/unpriced' });
  hold.resolve();
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks.filter(({ turn }) => turn === 2))).toEqual(['running', 'turn.completed error', 'idle']);
  expect(await sessionOf(sessionId)).toMatchObject({
    error: {
      code: 'budget_invalid',
      message: 'The budget is in money, and no price is configured for scripted/unpriced.',
    },
  });
  expect(asked).toEqual(['test']);
  expect(await world.platform.db.query(sql`select 1 from operations where finished_at is null`)).toEqual([]);
});

test('without a budget in money a model needs no price', async () => {
  await world.work({ ask: answering([{ text: 'ok' }]) });
  const agentId = await world.agent([], { model: 'scripted/unpriced' });
  const sessionId = await world.open(agentId, { budget: { maxSteps: 1 } });
  await world.until(sessionId, is('idle'));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', usage: { costUsd: null } });
});
