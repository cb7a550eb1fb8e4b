// Responses that their token limit has cut, and `limits.continueWhenCut`, with which the model continues them.
import type { Chunk } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AskModel, ModelCall } from '../../src/models/model/model.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { CUT_OFF } from '../../src/turn/calls.ts';
import { type HaltingNode, haltingAt } from '../support/halting.ts';
import { agentTool, byModel, createWorld, httpTool, outline, usage, type World } from '../support/session-world.ts';

let world: World;
let node: HaltingNode | undefined;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  node?.release();
  node = undefined;
  await world.close();
});

const is =
  (status: string, turn?: number) =>
  (chunk: Chunk): boolean =>
    chunk.type === 'session.status' && chunk.status === status && chunk.turn === (turn ?? chunk.turn);

type Step = { text?: string; calls?: [name: string, input: unknown][]; cut?: true };

/** The n-th model call of the session gives the n-th step; the last one repeats. */
function model(steps: readonly Step[], seen: ModelCall[] = []): AskModel {
  return async function* (call) {
    seen.push(structuredClone(call));
    const { text = '', calls = [], cut } = steps[Math.min(call.callsBefore, steps.length - 1)]!;
    if (text !== '') yield { type: 'text', delta: text };
    for (const [name, input] of calls) yield { type: 'toolCall', name, input };
    yield { type: 'finish', reason: cut ? 'maxOutputTokens' : calls.length > 0 ? 'toolCalls' : 'endTurn', usage };
  };
}

const continuing = (times: number, more: object = {}) => ({ limits: { continueWhenCut: times, ...more } });
const completedOf = (chunks: readonly Chunk[]) => chunks.find(({ type }) => type === 'turn.completed');

/** What a reader shows after every reset. */
function shownOf(chunks: readonly Chunk[]): string {
  let shown: Extract<Chunk, { type: 'message.chunk' }>[] = [];
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') shown.push(chunk);
    if (chunk.type === 'message.reset') shown = shown.filter(({ seq }) => seq < chunk.fromSeq);
  }
  return shown.map(({ delta }) => delta).join('');
}

test('a cut response ends the turn unless the agent continues it', async () => {
  await world.work({ ask: model([{ text: 'Once upon', cut: true }, { text: ' a time' }]) });
  const sessionId = await world.open(await world.agent());
  expect(outline(await world.until(sessionId, is('idle'))).slice(1)).toEqual([
    '"Once upon"',
    'turn.completed maxOutputTokens',
    'idle',
  ]);
});

test('a continued response is one text: nothing is reset, and each part is a step and a message', async () => {
  const seen: ModelCall[] = [];
  const ask = model([{ text: 'Once upon', cut: true }, { text: ' a ', cut: true }, { text: 'time.' }], seen);
  await world.work({ ask });
  const sessionId = await world.open(await world.agent([], continuing(2)));
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual(['running', '"Once upon"', '" a "', '"time."', 'turn.completed endTurn', 'idle']);
  expect(completedOf(chunks)).toMatchObject({ usage: { steps: 3, outputTokens: 3 * usage.outputTokens } });
  expect(seen.map(({ transcript }) => transcript.map(({ role }) => role))).toEqual([
    ['user'],
    ['user', 'assistant'],
    ['user', 'assistant', 'assistant'],
  ]);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ role, content }) => [role, content])).toEqual([
    ['user', [{ type: 'text', text: 'go' }]],
    ['assistant', [{ type: 'text', text: 'Once upon' }]],
    ['assistant', [{ type: 'text', text: ' a ' }]],
    ['assistant', [{ type: 'text', text: 'time.' }]],
  ]);
});

test('a turn continues at most as often as the agent says, and the next turn may do so again', async () => {
  await world.work({ ask: model([{ text: 'a', cut: true }]) });
  const sessionId = await world.open(await world.agent([], continuing(2)));
  const first = await world.until(sessionId, is('idle'));
  expect(completedOf(first)).toMatchObject({ stopReason: 'maxOutputTokens', usage: { steps: 3 } });
  await sendMessage(world.ctx, { sessionId, content: 'more' });
  const second = (await world.until(sessionId, is('idle', 2))).filter(({ turn }) => turn === 2);
  expect(completedOf(second)).toMatchObject({ stopReason: 'maxOutputTokens', usage: { steps: 3 } });
});

test.each<[title: string, steps: Step[], asked: number]>([
  ['before its first word', [{ cut: true }], 1],
  ['before the next word', [{ text: 'Once', cut: true }, { cut: true }], 2],
  ['after white space', [{ text: ' \n', cut: true }], 1],
])(
  'a response that is cut %s, while the model thinks, is not continued: the request would be the same',
  async (...row) => {
    const [, steps, asked] = row;
    const seen: ModelCall[] = [];
    await world.work({ ask: model(steps, seen) });
    const sessionId = await world.open(await world.agent([], continuing(3)));
    const chunks = await world.until(sessionId, is('idle'));
    expect(completedOf(chunks)).toMatchObject({ stopReason: 'maxOutputTokens', usage: { steps: asked } });
    expect(seen).toHaveLength(asked);
  },
);

test.each<[string, object, object, string]>([
  ['the turn’s steps', continuing(5, { maxStepsPerTurn: 2 }), {}, 'maxOutputTokens'],
  ['the budget', continuing(5), { budget: { maxSteps: 2 } }, 'budgetReached'],
])('continuing uses up %s', async (_, agent, open, stopReason) => {
  await world.work({ ask: model([{ text: 'a', cut: true }]) });
  const sessionId = await world.open(await world.agent([], agent), open);
  const chunks = await world.until(sessionId, is('idle'));
  expect(completedOf(chunks)).toMatchObject({ stopReason, usage: { steps: 2 } });
});

test('calls of a cut response never run: the model gets their errors and may call again', async () => {
  const ran: unknown[] = [];
  const seen: ModelCall[] = [];
  const pay = (amount: number): [string, unknown] => ['pay', { amount }];
  await world.work({
    ask: model([{ text: 'Paying', calls: [pay(1)], cut: true }, { calls: [pay(12)] }, { text: 'Paid' }], seen),
    run: async ({ input }) => {
      ran.push(input);
      return { output: 'ok' };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('pay')], continuing(1)));
  const chunks = await world.until(sessionId, is('idle'));
  expect(ran).toEqual([{ amount: 12 }]);
  expect(outline(chunks)).toEqual([
    ...['running', '"Paying"', 'tool.call not run', 'tool.result not run'],
    ...['tool.call', 'tool.result', '"Paid"', 'turn.completed endTurn', 'idle'],
  ]);
  expect(seen[1]!.transcript.at(-1)).toMatchObject({ role: 'tool', content: [{ error: CUT_OFF }] });
});

const outputSchema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] };

test('the joined text is the output of the turn', async () => {
  await world.work({ ask: model([{ text: '{"tot', cut: true }, { text: 'al": 3}' }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema, ...continuing(1) }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(completedOf(chunks)).toMatchObject({ stopReason: 'endTurn', output: { total: 3 } });
});

test('a joined text that does not match the schema is reset from its beginning, and corrected once', async () => {
  const steps: Step[] = [
    { text: '{"su', cut: true },
    { text: 'm": 3}' },
    { text: '{"tot', cut: true },
    { text: 'al": 3}' },
  ];
  await world.work({ ask: model(steps) });
  const sessionId = await world.open(await world.agent([], { outputSchema, ...continuing(2) }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toContain('message.reset 2');
  expect(shownOf(chunks)).toBe('{"total": 3}');
  expect(completedOf(chunks)).toMatchObject({ output: { total: 3 }, usage: { steps: 4 } });
});

test('a joined text that is wrong twice fails the turn', async () => {
  await world.work({ ask: model([{ text: '[', cut: true }, { text: ']' }, { text: '[', cut: true }, { text: '1]' }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema, ...continuing(2) }));
  const chunks = await world.until(sessionId, (chunk) => chunk.type === 'turn.completed');
  expect(completedOf(chunks)).toMatchObject({ stopReason: 'error', usage: { steps: 4 } });
  await expect
    .poll(async () => (await getSession(world.ctx, { sessionId })).session.error)
    .toMatchObject({ code: 'output_invalid' });
});

test('the result of a child session is its whole response', async () => {
  const seen: ModelCall[] = [];
  await world.work({
    ask: byModel({
      parent: model([{ calls: [['help', { input: 'x' }]] }, { text: 'Done' }], seen),
      child: model([{ text: 'One ', cut: true }, { text: 'two ', cut: true }, { text: 'three' }]),
    }),
  });
  const child = await world.agent([], { model: 'scripted/child', ...continuing(2) });
  const sessionId = await world.open(await world.agent([agentTool('help', child)], { model: 'scripted/parent' }));
  await world.until(sessionId, is('idle'));
  expect(seen[1]!.transcript.at(-1)).toMatchObject({ content: [{ output: 'One two three' }] });
});

test.each<[string, RegExp, 'before' | 'after']>([
  ['before the cut response is stored', /insert into model_usage/, 'before'],
  ['after the cut response is stored, before the next call is', /insert into model_usage/, 'after'],
  ['before the next call is stored', /insert into operations/, 'before'],
  ['after the next call is stored', /insert into operations/, 'after'],
])('a response is continued once if the node is killed %s', async (_, statement, when) => {
  node = haltingAt(await world.anotherNode(), statement, when);
  const ask = model([{ text: 'Once upon', cut: true }, { text: ' a time' }]);
  const dying = await world.work({ platform: node.platform, ask });
  const sessionId = await world.open(await world.agent([], continuing(1)));
  await node.halted;
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), ask });
  const chunks = await world.until(sessionId, is('idle'));
  expect(shownOf(chunks)).toBe('Once upon a time');
  expect(completedOf(chunks)).toMatchObject({ stopReason: 'endTurn', usage: { steps: 2 } });
});
