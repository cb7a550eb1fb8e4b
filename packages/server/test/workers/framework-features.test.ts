// What is specific to each framework: its own loops, graphs, handoffs and tools.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { AIMessage, type BaseMessage } from '@langchain/core/messages';
import { interrupt, MemorySaver, MessagesAnnotation, StateGraph } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, setTracingDisabled } from '@openai/agents';
import { TurnFailedError } from '@signalbox/client';
import * as aiSdk from '@signalbox/client/workers/ai-sdk';
import * as langgraph from '@signalbox/client/workers/langgraph';
import * as openaiAgents from '@signalbox/client/workers/openai-agents';
import { streamText, ToolLoopAgent, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { calls, frameworkWorld, isEnded, pay, stopReasonOf, textOf } from '../support/framework-world.ts';
import { respond } from '../support/openai-server.ts';

const world = frameworkWorld();
const { until, sessionOf, lastPrompt } = world;

const aiSdkModel = () =>
  createOpenAICompatible({ name: 'test', baseURL: world.server.url, apiKey: 'none', includeUsage: true })('any');
const llm = (more: object = {}) =>
  new ChatOpenAI({
    model: 'any',
    apiKey: 'none',
    configuration: { baseURL: world.server.url },
    maxRetries: 0,
    ...more,
  });
const agentsModel = () => {
  setTracingDisabled(true);
  return new OpenAIProvider({ baseURL: world.server.url, apiKey: 'none', useResponses: false }).getModel('any');
};

// ── AI SDK ───────────────────────────────────────────────────────────────────────────────────────────────────────────

test('AI SDK: a tool that only the program has runs in the program, with the others stored', async () => {
  world.server.next(
    respond({
      toolCalls: [
        { name: 'clock', arguments: {} },
        { name: 'pay', arguments: { order: '1' } },
      ],
    }),
    respond({ text: 'Paid at noon.' }),
  );
  const clock = tool({ inputSchema: z.object({}), execute: async () => 'noon' });
  world.start({
    tools: { pay: () => 'paid' },
    onTurn: aiSdk.runAgent(
      (settings) =>
        new ToolLoopAgent({ model: aiSdkModel(), ...settings, tools: { ...settings.tools, clock }, maxRetries: 0 }),
    ),
  });
  const session = await world.open({ tools: [pay()] });
  expect(textOf(await until(session, isEnded))).toBe('Paid at noon.');
  expect(lastPrompt().slice(-2)).toEqual(['tool: noon', 'tool: paid']);
  expect((await sessionOf(session)).usage.toolCalls).toBe(1);
});

test('AI SDK: a loop of one’s own takes the tools and the messages of a turn', async () => {
  world.server.next(calls('1'), respond({ text: 'Paid.' }));
  world.start({
    tools: { pay: () => 'paid' },
    onTurn: async (turn, { signal }) => {
      for (let calledTools = true; calledTools; ) {
        const result = streamText({
          model: aiSdkModel(),
          messages: await aiSdk.messagesOf(turn),
          tools: aiSdk.toolsOf(turn),
          abortSignal: signal,
        });
        for await (const delta of result.textStream) void turn.append(delta);
        calledTools = (await result.finishReason) === 'tool-calls';
      }
    },
  });
  const session = await world.open({ tools: [pay()] });
  expect(textOf(await until(session, isEnded))).toBe('One moment. Paid.');
  expect(lastPrompt().slice(1)).toEqual(['assistant: One moment.  pay{"order":"1"}', 'tool: paid']);
});

// ── LangGraph ────────────────────────────────────────────────────────────────────────────────────────────────────────

test('LangGraph: the text of a model that does not stream, and of a node without a model, is appended once', async () => {
  world.server.next((response) => {
    const message = { role: 'assistant', content: 'From the model. ' };
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ id: 'x', choices: [{ index: 0, finish_reason: 'stop', message }], usage }));
  });
  const model = llm({ streaming: false, disableStreaming: true });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('sign', () => ({ messages: [new AIMessage('From the node.')] }))
    .addEdge('__start__', 'model')
    .addEdge('model', 'sign')
    .compile();
  world.start({ onTurn: langgraph.runAgent(() => graph) });
  const session = await world.open();
  expect(textOf(await until(session, isEnded))).toBe('From the model. From the node.');
  expect((await sessionOf(session)).usage).toMatchObject({ inputTokens: 7, outputTokens: 3 });
});

test('LangGraph: an agent within a graph calls its tools through the turn, and its text is appended once', async () => {
  world.server.next(calls('1'), respond({ text: 'Paid.' }));
  world.start({
    tools: { pay: () => 'paid' },
    onTurn: langgraph.runAgent(({ tools }) =>
      new StateGraph(MessagesAnnotation)
        .addNode('inner', createReactAgent({ llm: llm(), tools }))
        .addEdge('__start__', 'inner')
        .compile(),
    ),
  });
  const session = await world.open({ tools: [pay()] });
  expect(textOf(await until(session, isEnded))).toBe('One moment. Paid.');
  expect((await sessionOf(session)).usage).toMatchObject({ inputTokens: 20, steps: 2 });
  const { data } = await world.service.client.sessions.messages(session.sessionId);
  expect(data.map(({ content }) => content[0])).toMatchObject([
    { text: 'Pay 17' },
    { text: 'One moment. ' },
    { output: 'paid' },
    { text: 'Paid.' },
  ]);

  // Nor is the text of earlier turns, which is in the state of both graphs.
  world.server.next(respond({ text: 'Again.' }));
  await world.service.client.sessions.sendMessage(session.sessionId, { content: 'Once more' });
  const chunks = await until(session, (chunk) => isEnded(chunk) && chunk.turn === 2);
  expect(textOf(chunks)).toBe('One moment. Paid.Again.');
});

test('LangGraph: a model with the tag `nostream` is not part of the response', async () => {
  world.server.next(respond({ text: 'Think first.' }), respond({ text: 'The response.' }));
  const call = async (messages: BaseMessage[], tags: string[]) => llm().invoke(messages, { tags });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('plan', async ({ messages }) => {
      await call(messages, ['nostream']);
      return {};
    })
    .addNode('respond', async ({ messages }) => ({ messages: [await call(messages, [])] }))
    .addEdge('__start__', 'plan')
    .addEdge('plan', 'respond')
    .compile();
  world.start({ onTurn: langgraph.runAgent(() => graph) });
  const session = await world.open();
  expect(textOf(await until(session, isEnded))).toBe('The response.');
  expect((await sessionOf(session)).usage).toMatchObject({ inputTokens: 20, steps: 1 });
});

test.each([{}, { checkpointer: new MemorySaver() }])(
  'LangGraph: a graph that calls interrupt() fails the turn with what to do instead (%o)',
  async (options) => {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('ask', () => {
        interrupt('May I?');
        return {};
      })
      .addEdge('__start__', 'ask')
      .compile(options);
    world.start({ onTurn: langgraph.runAgent(() => graph) });
    const session = await world.open();
    expect(stopReasonOf(await until(session, isEnded))).toBe('error');
    const message = expect.stringContaining('approval');
    expect((await sessionOf(session)).error).toMatchObject({ code: 'worker_failed', message });
  },
);

test('LangGraph: a checkpointer of the graph does not repeat messages', async () => {
  world.server.next(respond({ text: 'One.' }), respond({ text: 'Two.' }));
  const graph = createReactAgent({ llm: llm(), tools: [], checkpointer: new MemorySaver() });
  world.start({ onTurn: langgraph.runAgent(() => graph) });
  const session = await world.open();
  await until(session, isEnded);
  await world.service.client.sessions.sendMessage(session.sessionId, { content: 'And then?' });
  await until(session, (chunk) => isEnded(chunk) && chunk.turn === 2);
  expect(lastPrompt()).toEqual(['system: Be brief.', 'user: Pay 17', 'assistant: One.', 'user: And then?']);
});

// ── OpenAI Agents ────────────────────────────────────────────────────────────────────────────────────────────────────

test('OpenAI Agents: an agent that is handed to calls its tools through the turn', async () => {
  world.server.next(
    respond({ toolCalls: [{ name: 'transfer_to_Payer', arguments: {} }] }),
    calls('1'),
    respond({ text: 'Paid.' }),
  );
  world.start({
    tools: { pay: () => 'paid' },
    onTurn: openaiAgents.runAgent(async ({ instructions, tools }) => {
      const model = await agentsModel();
      const payer = new Agent({ name: 'Payer', model, tools });
      return Agent.create({ name: 'Router', model, instructions, handoffs: [payer] });
    }),
  });
  const session = await world.open({ tools: [pay()] });
  expect(textOf(await until(session, isEnded))).toBe('One moment. Paid.');
  expect((await sessionOf(session)).usage).toMatchObject({ inputTokens: 30, steps: 2, toolCalls: 1 });
});

test('OpenAI Agents: a model that refuses ends the turn as a refusal', async () => {
  world.server.next(respond({ refusal: ['I will ', 'not.'] }));
  world.start({
    onTurn: openaiAgents.runAgent(
      async (settings) => new Agent({ name: 'Test', model: await agentsModel(), ...settings }),
    ),
  });
  const session = await world.open();
  expect(stopReasonOf(await until(session, isEnded))).toBe('refusal');
});

// ── All of them ──────────────────────────────────────────────────────────────────────────────────────────────────────

test('an error with a code of the program’s own ends the turn with it, and a code that the service would refuse is not accepted', async () => {
  expect(() => new TurnFailedError('Out of stock', 'x')).toThrow(TypeError);
  world.start({
    onTurn: aiSdk.runAgent(() => {
      throw new TurnFailedError('out_of_stock', 'There is none left');
    }),
  });
  const session = await world.open();
  await until(session, isEnded);
  expect((await sessionOf(session)).error).toEqual({ code: 'out_of_stock', message: 'There is none left' });
});
