// An agent built with the AI SDK and run by this program. Signalbox stores and streams its sessions, runs its tools and asks
// for approvals.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/worker-ai-sdk.ts'
import { Signalbox, type Turn } from '@signalbox/client';
import { type FinishReason, isStepCount, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';

const client = new Signalbox({
  apiKey: process.env.SIGNALBOX_API_KEY ?? '',
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:4500',
});

const queue = 'weather';
const agent = await client.agents.create({
  name: 'Weather',
  model: { provider: 'worker', queue },
  instructions: 'You report the weather.',
  tools: [
    {
      type: 'client',
      name: 'look_outside',
      description: 'Returns the current weather in a city.',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ],
});

/** The turn's tools as AI SDK tools. Each call goes through Signalbox. */
function toolsOf(turn: Turn): ToolSet {
  return Object.fromEntries(
    turn.tools.map(({ name, description, inputSchema }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema(inputSchema),
        execute: (input: unknown) => turn.callTool(name, input),
      }),
    ]),
  );
}

/** The transcript in the AI SDK's format. */
function messagesOf({ messages }: Turn): ModelMessage[] {
  const toolOf = new Map<string, string>();
  return messages.flatMap(({ role, content }): ModelMessage[] => {
    const texts = content.flatMap((part) => (part.type === 'text' ? [{ type: 'text' as const, text: part.text }] : []));
    if (role === 'user') return [{ role, content: texts }];
    if (role === 'assistant') {
      const calls = content.flatMap((part) => {
        if (part.type !== 'tool_call') return [];
        const { toolCallId, tool: toolName, input } = part;
        toolOf.set(toolCallId, toolName);
        return [{ type: 'tool-call' as const, toolCallId, toolName, input }];
      });
      return texts.length + calls.length === 0 ? [] : [{ role, content: [...texts, ...calls] }];
    }
    const results = content.flatMap((part) => {
      if (part.type !== 'tool_result') return [];
      const { toolCallId, error, output: value = null } = part;
      const output =
        error === undefined
          ? { type: 'json' as const, value: JSON.parse(JSON.stringify(value)) }
          : { type: 'error-text' as const, value: error };
      return [{ type: 'tool-result' as const, toolCallId, toolName: toolOf.get(toolCallId) ?? '', output }];
    });
    return [{ role, content: results }];
  });
}

// A mock that needs no network. Put any AI SDK model here, such as `openai('gpt-5')`.
const usage = {
  inputTokens: { total: 30, noCache: 30, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 8, text: 8, reasoning: 0 },
};
const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => {
    const hasToolResult = prompt.at(-1)?.role === 'tool';
    const call = { toolCallId: 'c1', toolName: 'look_outside', input: '{"city":"Bergen"}' };
    const text = hasToolResult ? ['It is ', 'raining ', 'in Bergen.'] : ['Let me check. '];
    return {
      stream: convertArrayToReadableStream([
        { type: 'stream-start' as const, warnings: [] },
        { type: 'text-start' as const, id: 't1' },
        ...text.map((delta) => ({ type: 'text-delta' as const, id: 't1', delta })),
        { type: 'text-end' as const, id: 't1' },
        ...(hasToolResult ? [] : [{ type: 'tool-call' as const, ...call }]),
        {
          type: 'finish' as const,
          finishReason: { unified: hasToolResult ? ('stop' as const) : ('tool-calls' as const), raw: undefined },
          usage,
        },
      ]),
    };
  },
});

/** The AI SDK's finish reasons as stop reasons of a turn. Any other becomes `endTurn`. */
const stopReasons: Partial<Record<FinishReason, 'maxOutputTokens' | 'refusal'>> = {
  length: 'maxOutputTokens',
  'content-filter': 'refusal',
};

const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
const running = client.workers.run({
  queue,
  signal: stopping.signal,
  tools: { look_outside: ({ city }: { city: string }) => ({ city, sky: 'rain' }) },
  onTurn: async (turn, { signal }) => {
    let failure: unknown;
    const result = streamText({
      model,
      instructions: turn.instructions,
      messages: messagesOf(turn),
      tools: toolsOf(turn),
      stopWhen: isStepCount(turn.limits.maxStepsPerTurn),
      abortSignal: signal,
      onLanguageModelCallEnd: ({ usage: { inputTokens = 0, outputTokens = 0 } }) =>
        turn.usage({ inputTokens, outputTokens }),
      onError: ({ error }) => {
        failure = error;
      },
    });
    for await (const delta of result.textStream) await turn.append(delta);
    if (failure) throw failure;
    return { stopReason: stopReasons[await result.finishReason] };
  },
});

const { sessionId } = await client.sessions.open({
  agentId: agent.agentId,
  environment: 'production',
  input: 'How is the weather in Bergen?',
  closeOnIdle: true,
});
for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'tool.call') process.stdout.write(`[${chunk.tool}] `);
  }
}
const { usage: used } = await client.sessions.get(sessionId);
console.log(`\n${used.steps} steps, ${used.inputTokens + used.outputTokens} tokens`);
stopping.abort();
await running;
