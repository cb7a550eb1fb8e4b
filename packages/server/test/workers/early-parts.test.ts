// Reasoning and tool input that a worker appends, on a real service.
import type { Chunk } from '@signalbox/client';
import { beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { clientTool } from '../support/session-world.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

let number = 0;

async function open(settings: object) {
  number += 1;
  const queue = `early-${number}`;
  const tools = [clientTool('look'), clientTool('note')];
  const model = { provider: 'worker' as const, queue };
  const { agentId } = await service.client.agents.create({ name: 'Worker', model, tools, ...settings });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  return { queue, sessionId };
}

async function chunksOf(sessionId: string): Promise<Chunk[]> {
  const { data } = await service.client.sessions.chunks(sessionId, { limit: 1000 });
  return data.flatMap(({ chunks }) => chunks);
}

const SHOWN = { showReasoning: true, showToolInput: true };
const DELTAS = [
  { type: 'reasoning' as const, delta: 'Hm.' },
  'Looking. ',
  { type: 'toolInput' as const, index: 1, tool: 'note', delta: '{"n":' },
  { type: 'toolInput' as const, index: 0, tool: 'look', delta: '{}' },
  { type: 'toolInput' as const, index: 1, tool: 'note', delta: '2}' },
];
const toolCalls = [
  { tool: 'look', input: {} },
  { tool: 'note', input: { n: 2 } },
];

test('what a worker appends is shown in its order, once, under the ids of the calls that it then requests', async () => {
  const { queue, sessionId } = await open(SHOWN);
  const { workers } = service.client;
  const claimed = (await workers.claim({ queue }))!;
  expect(claimed).toMatchObject(SHOWN);
  const { workerTurnId, cursor } = claimed;
  const after = await workers.append(workerTurnId, { deltas: DELTAS, after: cursor });
  expect(await workers.append(workerTurnId, { deltas: DELTAS, after: cursor })).toBe(after);
  await workers.complete(workerTurnId, { toolCalls });
  await expect.poll(async () => (await chunksOf(sessionId)).filter(({ type }) => type === 'tool.call').length).toBe(2);
  const chunks = await chunksOf(sessionId);
  expect(chunks.slice(0, 8).map(({ type }) => type)).toEqual([
    'session.status',
    'step.started',
    'message.started',
    'reasoning.chunk',
    'message.chunk',
    'tool.input.chunk',
    'tool.input.chunk',
    'tool.input.chunk',
  ]);
  expect(chunks[1]).toMatchObject({ step: 1, model: `worker/${queue}` });
  const { data: messages } = await service.client.sessions.messages(sessionId);
  expect(chunks[2]).toMatchObject({ messageId: messages[1]!.messageId });
  for (const call of chunks.filter((chunk) => chunk.type === 'tool.call')) {
    const own = chunks.filter((chunk) => chunk.type === 'tool.input.chunk' && chunk.toolCallId === call.toolCallId);
    const text = own.map((chunk) => (chunk.type === 'tool.input.chunk' ? chunk.delta : '')).join('');
    expect(JSON.parse(text)).toEqual(call.input);
  }
});

test('reasoning and tool input of an agent that does not show them are ignored', async () => {
  const { queue, sessionId } = await open({});
  const { workers } = service.client;
  const { workerTurnId, cursor } = (await workers.claim({ queue }))!;
  expect(await workers.append(workerTurnId, { deltas: [DELTAS[0]!], after: cursor })).toBe(cursor);
  await workers.append(workerTurnId, { deltas: DELTAS, after: cursor });
  await workers.complete(workerTurnId);
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');
  const chunks = await chunksOf(sessionId);
  expect(chunks.map(({ type }) => type)).toEqual([
    'session.status',
    'step.started',
    'message.started',
    'message.chunk',
    'turn.completed',
    'session.status',
  ]);
});

test('what a released worker showed is void, and the step begins again for the next one', async () => {
  const { queue, sessionId } = await open(SHOWN);
  const { workers } = service.client;
  const first = (await workers.claim({ queue }))!;
  await workers.append(first.workerTurnId, { deltas: DELTAS });
  await workers.release(first.workerTurnId);
  const second = (await workers.claim({ queue }))!;
  await workers.append(second.workerTurnId, { deltas: ['Done.'] });
  await workers.complete(second.workerTurnId);
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');
  const chunks = await chunksOf(sessionId);
  const reset = chunks.findIndex(({ type }) => type === 'message.reset');
  expect(chunks[reset]).toMatchObject({ fromSeq: 2 });
  expect(chunks.slice(reset + 1).map(({ type }) => type)).toEqual([
    'step.started',
    'message.started',
    'message.chunk',
    'turn.completed',
    'session.status',
  ]);
  const ids = chunks.flatMap((chunk) => (chunk.type === 'message.started' ? [chunk.messageId] : []));
  expect(ids).toEqual([ids[0], ids[0]]);
});

test('a program of the client appends reasoning and the input of its calls', async () => {
  const { queue, sessionId } = await open(SHOWN);
  const stopping = new AbortController();
  const running = service.client.workers.run({
    queue,
    signal: stopping.signal,
    tools: { look: async () => 'seen' },
    onTurn: async (turn) => {
      for (const word of ['I ', 'should ', 'look.']) void turn.appendReasoning(word);
      void turn.appendToolInput(0, 'look', '{}');
      await turn.append(`I have ${await turn.callTool('look', {})}.`);
    },
  });
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');
  stopping.abort();
  await running;
  const chunks = await chunksOf(sessionId);
  const reasoning = chunks.map((chunk) => (chunk.type === 'reasoning.chunk' ? chunk.delta : '')).join('');
  expect(reasoning).toBe('I should look.');
  const [written, call] = ['tool.input.chunk', 'tool.call'].map((type) => chunks.find((chunk) => chunk.type === type));
  expect(written).toMatchObject({ toolName: 'look', toolCallId: (call as { toolCallId: string }).toolCallId });
});
