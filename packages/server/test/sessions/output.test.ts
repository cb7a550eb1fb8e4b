// How turns end by themselves: stop reasons, and the answer that an outputSchema asks for, with its one repair.
import type { Chunk } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { updateAgent } from '../../src/agents/agents.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/runtime/models/model.ts';
import { CUT_OFF } from '../../src/runtime/turn/calls.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { type HaltingNode, haltingAt } from '../support/halting.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, httpTool, never, outline, usage, type World } from '../support/session-world.ts';

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
const outputSchema = {
  type: 'object',
  properties: { total: { type: 'number' } },
  required: ['total'],
  additionalProperties: false,
};
const right = '{"total": 3}';
const wrong = '{"sum": 3}';

function completedOf(chunks: readonly Chunk[], turn = 1) {
  return chunks.find((chunk) => chunk.type === 'turn.completed' && chunk.turn === turn);
}

// ── Stop reasons ─────────────────────────────────────────────────────────────────────────────────────────────────────

const hanging: AskModel = async function* (_, signal) {
  yield { type: 'text', delta: 'Hm' };
  await never(signal);
};

test.each<[string, string, AskModel, object]>([
  ['endTurn', 'idle', answering([{ text: 'ok' }]), {}],
  ['maxSteps', 'idle', answering([{ calls: [['again', {}]] }]), {}],
  [
    'maxOutputTokens',
    'idle',
    async function* () {
      yield { type: 'text', delta: 'Once upon' };
      yield { type: 'finish', reason: 'maxOutputTokens', usage };
    },
    {},
  ],
  ['budgetReached', 'idle', answering([{ calls: [['again', {}]] }]), { budget: { maxSteps: 1 } }],
  [
    'refusal',
    'idle',
    async function* () {
      yield { type: 'text', delta: 'I would rather not.' };
      yield { type: 'finish', reason: 'refusal', usage };
    },
    {},
  ],
  ['interrupted', 'idle', hanging, {}],
  ['timedOut', 'idle', hanging, {}],
  [
    'error',
    'failed',
    async function* () {
      yield { type: 'text', delta: 'Well' };
      throw new ModelFailure('model_rejected', 'The provider refused the request.', { retryable: false });
    },
    {},
  ],
])('a turn that ends as %s says so on its last chunks and on the session', async (stopReason, status, ask, open) => {
  const clock = createManualClock();
  await world.close();
  world = await createWorld({ clock });
  await world.work({ ask });
  const limits = { maxStepsPerTurn: 2, turnTimeoutSeconds: 60 };
  const sessionId = await world.open(await world.agent([httpTool('again')], { limits }), open);
  if (ask === hanging) await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
  if (stopReason === 'interrupted') await interruptSession(world.ctx, { sessionId });
  if (stopReason === 'timedOut') clock.advance(60_000);
  const chunks = await world.until(sessionId, is(status));
  expect(chunks.slice(-2)).toMatchObject([
    { type: 'turn.completed', stopReason },
    { type: 'session.status', status, stopReason },
  ]);
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session).toMatchObject({ status, stopReason });
  expect(session.error).toEqual(
    stopReason === 'error' ? { code: 'model_rejected', message: 'The provider refused the request.' } : null,
  );
  expect(completedOf(chunks)).not.toHaveProperty('output');
});

test('a turn has as many steps as its agent says, and the results of the last one are kept for the next turn', async () => {
  const seen: ModelCall[] = [];
  await world.work({
    ask: answering(
      [{ calls: [['again', {}]] }, { calls: [['again', {}]] }, { calls: [['again', {}]] }, { text: 'ok' }],
      (call) => seen.push(call),
    ),
    run: async () => ({ output: seen.length }),
  });
  const sessionId = await world.open(await world.agent([httpTool('again')], { limits: { maxStepsPerTurn: 3 } }));
  await world.until(sessionId, is('idle'));
  expect(seen).toHaveLength(3);
  await sendMessage(world.ctx, { sessionId, content: 'go on' });
  await world.until(sessionId, is('idle', 2));
  expect(seen[3]!.transcript.slice(-2)).toMatchObject([
    { role: 'tool', content: [{ output: 3 }] },
    { role: 'user', content: [{ text: 'go on' }] },
  ]);
});

test('no call of an answer that was cut runs, whole or not, and the model is told so with the next turn', async () => {
  const seen: ModelCall[] = [];
  const ran: string[] = [];
  await world.work({
    async *ask(call) {
      seen.push(structuredClone(call));
      if (call.callsBefore > 0) return yield* answering([{ text: 'ok' }])(call, new AbortController().signal);
      yield { type: 'text', delta: 'First' };
      yield { type: 'toolCall', name: 'whole', input: { a: 1 } };
      yield { type: 'toolCall', name: 'asked', input: {} };
      yield { type: 'toolCall', name: 'broken', input: '{"a": ' };
      yield { type: 'finish', reason: 'maxOutputTokens', usage };
    },
    run: async ({ tool }) => {
      ran.push(tool.name);
      return { output: null };
    },
  });
  const tools = [httpTool('whole'), httpTool('asked', { approval: 'always' }), httpTool('broken')];
  // Nor is what was cut judged by the schema: the model is not asked again.
  const sessionId = await world.open(await world.agent(tools, { outputSchema }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(completedOf(chunks)).toMatchObject({ stopReason: 'maxOutputTokens', usage: { steps: 1, toolCalls: 3 } });
  const refused = ['tool.call not run', 'tool.result not run'];
  expect(outline(chunks)).toEqual([
    'running',
    '"First"',
    ...[...refused, ...refused, ...refused],
    'turn.completed maxOutputTokens',
    'idle',
  ]);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.at(-1)).toMatchObject({ role: 'tool', content: Array(3).fill({ error: CUT_OFF }) });

  await sendMessage(world.ctx, { sessionId, content: 'go on' });
  await world.until(sessionId, is('failed', 2));
  expect(ran).toEqual([]);
  expect(seen[1]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
});

// ── The answer by schema ─────────────────────────────────────────────────────────────────────────────────────────────

test.each([
  ['as it is', right, { total: 3 }],
  ['with space around', `\n\n ${right} \n`, { total: 3 }],
  ['in a fenced block', `\`\`\`json\n${right}\n\`\`\``, { total: 3 }],
  ['in a fenced block of no language', `\`\`\`\n${right}\n\`\`\`\n`, { total: 3 }],
  ['in a fenced block of one line', `\`\`\`JSON ${right}\`\`\``, { total: 3 }],
])('an answer %s is the output of the turn', async (_, text, output) => {
  await world.work({ ask: answering([{ text }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema }), { closeOnIdle: true });
  const chunks = await world.until(sessionId, is('completed'));
  expect(outline(chunks).slice(2)).toEqual(['turn.completed endTurn', 'completed']);
  expect(completedOf(chunks)).toMatchObject({ output });
});

test('null is an output like any other', async () => {
  await world.work({ ask: answering([{ text: 'null' }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema: { type: ['null', 'object'] } }));
  expect(completedOf(await world.until(sessionId, is('idle')))).toHaveProperty('output', null);
});

test('a wrong answer is void: the model is told what is wrong and asked once more, and the transcript has it all', async () => {
  const seen: ModelCall[] = [];
  await world.work({ ask: answering([{ text: wrong }, { text: right }], (call) => seen.push(call)) });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    `"${wrong}"`,
    'message.reset 2',
    `"${right}"`,
    'turn.completed endTurn',
    'idle',
  ]);
  expect(completedOf(chunks)).toMatchObject({ output: { total: 3 }, usage: { steps: 2 } });

  const { data } = await listMessages(world.ctx, { sessionId });
  const correction = expect.stringMatching(/does not match.*JSON Schema.*total/s);
  expect(data.map(({ role, content }) => [role, content])).toEqual([
    ['user', [{ type: 'text', text: 'go' }]],
    ['assistant', [{ type: 'text', text: wrong }]],
    ['user', [{ type: 'text', text: correction }]],
    ['assistant', [{ type: 'text', text: right }]],
  ]);
  expect(seen.map((call) => call.outputSchema)).toEqual([outputSchema, outputSchema]);
  expect(seen[1]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('a second wrong answer fails the session with a clear error', async () => {
  await world.work({ ask: answering([{ text: wrong }, { text: 'no JSON' }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  const chunks = await world.until(sessionId, is('failed'));
  expect(outline(chunks)).toEqual([
    'running',
    `"${wrong}"`,
    'message.reset 2',
    '"no JSON"',
    'turn.completed error',
    'failed',
  ]);
  expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({
    status: 'failed',
    error: { code: 'output_invalid', message: expect.stringContaining('it is not JSON') },
    usage: { steps: 2 },
  });
});

test('a response without text is requested once more, and there is nothing to reset', async () => {
  await world.work({ ask: answering([{}, { text: right }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    `"${right}"`,
    'turn.completed endTurn',
    'idle',
  ]);
});

test('tools may be used before the wrong answer and before the right one', async () => {
  await world.work({
    ask: answering([
      { text: 'Adding', calls: [['add', {}]] },
      { text: wrong },
      { text: 'Adding again', calls: [['add', {}]] },
      { text: right },
    ]),
    run: async () => ({ output: 3 }),
  });
  const sessionId = await world.open(await world.agent([httpTool('add')], { outputSchema }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    '"Adding"',
    'tool.call',
    'tool.result',
    `"${wrong}"`,
    'message.reset 5',
    '"Adding again"',
    'tool.call',
    'tool.result',
    `"${right}"`,
    'turn.completed endTurn',
    'idle',
  ]);
  expect(completedOf(chunks)).toMatchObject({ output: { total: 3 } });
});

test('the correction is one for a turn, whatever stands between, and each turn has its own', async () => {
  await world.work({
    ask: answering([
      { text: wrong },
      { text: right },
      { text: wrong },
      { text: 'Adding', calls: [['add', {}]] },
      { text: wrong },
    ]),
  });
  const sessionId = await world.open(await world.agent([httpTool('add')], { outputSchema }));
  await world.until(sessionId, is('idle', 1));
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await world.until(sessionId, is('failed', 2));
});

test.each<[string, object, object, string]>([
  ['the last step', { limits: { maxStepsPerTurn: 1 } }, {}, 'maxSteps'],
  ['the budget', {}, { budget: { maxSteps: 1 } }, 'budgetReached'],
])('where %s is used up by a wrong answer, the turn ends without output', async (_, more, open, stopReason) => {
  await world.work({ ask: answering([{ text: wrong }, { text: right }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema, ...more }), open);
  const chunks = await world.until(sessionId, is('idle'));
  expect(completedOf(chunks)).toMatchObject({ stopReason, usage: { steps: 1 } });
  expect(completedOf(chunks)).not.toHaveProperty('output');
});

test('a refusal is not checked against the schema', async () => {
  await world.work({
    ask: async function* () {
      yield { type: 'text', delta: 'No.' };
      yield { type: 'finish', reason: 'refusal', usage };
    },
  });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    '"No."',
    'turn.completed refusal',
    'idle',
  ]);
});

test.each<[string, RegExp, 'before' | 'after']>([
  ['before the wrong answer is stored', /insert into model_usage/, 'before'],
  ['after the wrong answer was stored, before it is corrected', /insert into model_usage/, 'after'],
  ['while it is corrected', /insert into operations/, 'before'],
  ['after it was corrected', /insert into operations/, 'after'],
])('killed %s: it is corrected once, and the second answer stands', async (_, statement, when) => {
  node = haltingAt(await world.anotherNode(), statement, when);
  const ask = answering([{ text: wrong }, { text: right }]);
  const dying = await world.work({ platform: node.platform, ask });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  await node.halted;
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), ask });
  const chunks = await world.until(sessionId, is('idle'));
  expect(completedOf(chunks)).toMatchObject({ output: { total: 3 }, usage: { steps: 2 } });
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  // What a reader has left after the resets is the right answer alone.
  let shown: Extract<Chunk, { type: 'message.chunk' }>[] = [];
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') shown.push(chunk);
    if (chunk.type === 'message.reset') shown = shown.filter(({ seq }) => seq < chunk.fromSeq);
  }
  expect(shown.map(({ delta }) => delta).join('')).toBe(right);
});

test('an agent that asks for no schema any more answers freely from the next turn on', async () => {
  const begun = Promise.withResolvers<void>();
  const hold = Promise.withResolvers<void>();
  await world.work({
    ask: async function* (call, signal) {
      if (call.callsBefore === 0) {
        begun.resolve();
        await hold.promise;
      }
      yield* answering([{ text: wrong }, { text: right }, { text: 'Freely' }])(call, signal);
    },
  });
  const agentId = await world.agent([], { outputSchema });
  const sessionId = await world.open(agentId);
  await begun.promise;
  // The turn under way stays with its version.
  await updateAgent(world.ctx, { agentId, outputSchema: null });
  hold.resolve();
  expect(completedOf(await world.until(sessionId, is('idle', 1)))).toMatchObject({ output: { total: 3 } });

  await sendMessage(world.ctx, { sessionId, content: 'again' });
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks.filter(({ turn }) => turn === 2))).toEqual([
    'running',
    '"Freely"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(completedOf(chunks, 2)).not.toHaveProperty('output');
});
