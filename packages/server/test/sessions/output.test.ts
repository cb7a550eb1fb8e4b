// How turns end: stop reasons, and the output that an outputSchema requires, with its one correction.
import type { Chunk } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { updateAgent } from '../../src/agents/agents.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { CUT_OFF } from '../../src/turn/calls.ts';
import { type HaltingNode, haltingAt } from '../support/halting.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, hanging, httpTool, is, outline, usage, type World } from '../support/session-world.ts';

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

const stuck = hanging('Hm');

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
  ['interrupted', 'idle', stuck, {}],
  ['timedOut', 'idle', stuck, {}],
  [
    'error',
    'idle',
    async function* () {
      yield { type: 'text', delta: 'Well' };
      throw new ModelFailure('model_rejected', 'The provider refused the request.', { retryable: false });
    },
    {},
  ],
])(
  'a turn that ends as %s has this stop reason in its last chunks and on the session',
  async (stopReason, status, ask, open) => {
    const clock = createManualClock();
    await world.close();
    world = await createWorld({ clock });
    await world.work({ ask });
    const limits = { maxStepsPerTurn: 2, turnTimeoutSeconds: 60 };
    const sessionId = await world.open(await world.agent([httpTool('again')], { limits }), open);
    if (ask === stuck) await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    if (stopReason === 'interrupted') await interruptSession(world.ctx, { sessionId });
    if (stopReason === 'timedOut') await clock.advance(60_000);
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
  },
);

test('a turn has at most its agent’s number of steps, and the next turn gets the results of the last one', async () => {
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

test('no call of a truncated response runs, complete or not, and the model gets the reason in the next turn', async () => {
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
  // A truncated response is not checked against the schema either: no correction is requested.
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
  const later = await world.until(sessionId, is('idle', 2));
  expect(outline(later)).toContain('turn.completed error');
  expect(ran).toEqual([]);
  expect(seen[1]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
});

// ── Output by schema ─────────────────────────────────────────────────────────────────────────────────────────────────

test.each([
  ['of plain JSON', right, { total: 3 }],
  ['with white space around it', `\n\n ${right} \n`, { total: 3 }],
  ['in a fenced block', `\`\`\`json\n${right}\n\`\`\``, { total: 3 }],
  ['in a fenced block without a language', `\`\`\`\n${right}\n\`\`\`\n`, { total: 3 }],
  ['in a fenced block on one line', `\`\`\`JSON ${right}\`\`\``, { total: 3 }],
])('a response %s is the output of the turn', async (_, text, output) => {
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

test('an invalid response is reset, the model gets the error and one more call, and the transcript has both', async () => {
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
  expect(data.map(({ role, content, rejected }) => [role, content, rejected])).toEqual([
    ['user', [{ type: 'text', text: 'go' }], undefined],
    ['assistant', [{ type: 'text', text: wrong }], true],
    ['user', [{ type: 'text', text: correction }], true],
    ['assistant', [{ type: 'text', text: right }], undefined],
  ]);
  const newest = await listMessages(world.ctx, { sessionId, order: 'desc', limit: 2 });
  expect(newest.data.map(({ rejected }) => rejected)).toEqual([undefined, true]);
  expect(seen.map((call) => call.outputSchema)).toEqual([outputSchema, outputSchema]);
  expect(seen[1]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('a second invalid response fails the turn with a clear error, and its text is void', async () => {
  await world.work({ ask: answering([{ text: wrong }, { text: 'no JSON' }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    `"${wrong}"`,
    'message.reset 2',
    '"no JSON"',
    'message.reset 6',
    'turn.completed error',
    'idle',
  ]);
  expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({
    status: 'idle',
    error: { code: 'output_invalid', message: expect.stringContaining('it is not JSON') },
    usage: { steps: 2 },
  });
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ role, rejected }) => [role, rejected])).toEqual([
    ['user', undefined],
    ['assistant', true],
    ['user', true],
    ['assistant', true],
  ]);
});

test('a response without text is requested once more, and its message is void', async () => {
  await world.work({ ask: answering([{}, { text: right }]) });
  const sessionId = await world.open(await world.agent([], { outputSchema }));
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    'message.reset 2',
    `"${right}"`,
    'turn.completed endTurn',
    'idle',
  ]);
});

test('the model can call tools before the invalid response and before the valid one', async () => {
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
    'message.reset 7',
    '"Adding again"',
    'tool.call',
    'tool.result',
    `"${right}"`,
    'turn.completed endTurn',
    'idle',
  ]);
  expect(completedOf(chunks)).toMatchObject({ output: { total: 3 } });
});

test('each turn has one correction, whatever happens between the two responses', async () => {
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
  const later = await world.until(sessionId, is('idle', 2));
  expect(outline(later)).toContain('turn.completed error');
});

test.each<[string, object, object, string]>([
  ['the last step', { limits: { maxStepsPerTurn: 1 } }, {}, 'maxSteps'],
  ['the budget', {}, { budget: { maxSteps: 1 } }, 'budgetReached'],
])('if an invalid response uses up %s, the turn ends without output', async (_, more, open, stopReason) => {
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
  ['before the invalid response is stored', /insert into model_usage/, 'before'],
  ['after the invalid response is stored, before its correction', /insert into model_usage/, 'after'],
  ['during the correction', /insert into operations/, 'before'],
  ['after the correction', /insert into operations/, 'after'],
])(
  'a response is corrected once and the second one is the output if the node is killed %s',
  async (_, statement, when) => {
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
    // After the resets a reader has only the valid response.
    let shown: Extract<Chunk, { type: 'message.chunk' }>[] = [];
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') shown.push(chunk);
      if (chunk.type === 'message.reset') shown = shown.filter(({ seq }) => seq < chunk.fromSeq);
    }
    expect(shown.map(({ delta }) => delta).join('')).toBe(right);
  },
);

test('if an agent loses its outputSchema, responses are free text from the next turn on', async () => {
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
  // The current turn keeps its version.
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
