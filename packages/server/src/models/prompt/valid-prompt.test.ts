// Every server takes every transcript that a session can have, and gets all of it. Each place of a request is known to be of its message.
import { type MessagePart, type Model, providerFacts } from '@signalbox/contract';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AnthropicBody,
  anthropicRefusal,
  type ChatBody,
  type ChatServer,
  type ConverseBody,
  chatRefusal,
  chatServers,
  converseRefusal,
  type GoogleBody,
  googleRefusal,
  type Refusal,
  responsesRefusal,
} from '../../../test/support/server-rules/transcript.ts';
import type { ModelCall, ModelEntry } from '../model/model.ts';
import { providerOf } from '../providers/providers.ts';
import { unsentRequest } from '../providers/request.ts';
import { messagesIn as markedIn } from './message-marks.ts';
import { placeholderFiles } from './prompt-files.ts';

interface Server {
  config: Model;
  /** Whether its responses have reasoning, in a field that it knows. */
  reasons: boolean;
  refusal(body: never): Refusal | undefined;
}

const chatAt = (server: ChatServer, baseUrl: string, model = 'any'): [string, Server] => [
  `${server} at ${baseUrl} with ${model}`,
  {
    config: { provider: 'openai-compatible', model, baseUrl },
    reasons: ['deepseek', 'moonshot'].includes(server),
    refusal: (body: ChatBody) => chatRefusal(server, body),
  },
];
const local = 'http://127.0.0.1:8000/v1';
/** Servers that an unknown one can be. A model's own rules go by its name. */
const unknown = (Object.keys(chatServers) as ChatServer[]).map((server) =>
  chatAt(
    server,
    local,
    { deepseek: 'deepseek-v4', moonshot: 'kimi-k2.6', 'vllm with Llama’s template': 'meta-llama/Llama-3.1-8B' }[
      server as string
    ] ?? 'any',
  ),
);

const servers: [string, Server][] = [
  [
    'OpenAI',
    { config: { provider: 'openai', model: 'any' }, reasons: true, refusal: responsesRefusal as Server['refusal'] },
  ],
  [
    'Anthropic',
    {
      config: { provider: 'anthropic', model: 'any' },
      reasons: true,
      refusal: (body: AnthropicBody) => anthropicRefusal(body),
    },
  ],
  [
    'Google',
    {
      config: { provider: 'google', model: providerFacts.google.own.exampleModel },
      reasons: true,
      refusal: (body: GoogleBody) => googleRefusal(body),
    },
  ],
  ...['us.anthropic.claude-sonnet-5-5-v1:0', 'meta.llama3-3-70b-instruct-v1:0', 'mistral.mistral-large-2407-v1:0'].map(
    (model): [string, Server] => [
      `Bedrock with ${model}`,
      {
        config: { provider: 'bedrock', model, baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com' },
        reasons: model.includes('anthropic'),
        refusal: (body: ConverseBody) => converseRefusal(body, model),
      },
    ],
  ),
  ...unknown,
  chatAt('openai', 'https://api.openai.com/v1'),
  chatAt('azure chat', 'https://mine.openai.azure.com/openai/v1'),
  chatAt('mistral', 'https://api.mistral.ai/v1'),
  chatAt('groq', 'https://api.groq.com/openai/v1'),
  chatAt('xai', 'https://api.x.ai/v1'),
  chatAt('deepseek', 'https://api.deepseek.com', 'deepseek-chat'),
  chatAt('moonshot', 'https://api.moonshot.ai/v1', 'kimi-k3'),
  chatAt('openrouter', 'https://openrouter.ai/api/v1'),
];

// ── Histories ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the model of a history gave with its response. */
const data = fc.constantFrom('none', 'own', 'another');
const words = fc.constantFrom('Hello', 'Look it up.', ' ', '\n\n', '', 'ü😀', 'x'.repeat(50));
const names = fc.constantFrom('look', 'pay', 'look<|channel|>commentary', 'functions.look', '2nd', 'x'.repeat(80), 'ö');
const inputs = fc.constantFrom<unknown>({ q: 1 }, {}, 'not JSON', null, [1], { deep: { a: [null] } });
/** What servers give calls as ids; Kimi its own. */
const ids = fc.constantFrom('D681PevKs', 'call_abc', '', 'a|b', 'x'.repeat(450));
const outcomes = fc.constantFrom<Partial<Extract<MessagePart, { type: 'tool_result' }>>>(
  { output: 'found' },
  { output: '' },
  { output: ' ' },
  { output: null },
  { output: { a: 1 } },
  { error: 'No.' },
  { output: 'paid', input: { q: 2 } },
  { outcomeUnknown: true },
);
const call = fc.record({ tool: names, input: inputs, outcome: outcomes, ownId: ids, hasResult: fc.boolean() });
const step = fc.record({
  text: words,
  calls: fc.array(call, { maxLength: 3 }),
  data,
  /** Results that come in several entries, in another order, or after the next message. */
  order: fc.constantFrom('one', 'reversed', 'late', 'apart'),
});
const turn = fc.record({
  texts: fc.array(words, { minLength: 1, maxLength: 2 }),
  steps: fc.array(step, { maxLength: 3 }),
});
const history = fc.array(turn, { minLength: 1, maxLength: 4 });
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

/** Each text and value has a number of its own, so that a request can be searched for it. */
function entriesOf(turns: readonly Turn[], server: Server): ModelEntry[] {
  let n = 0;
  const numbered = (text: string) => (text.trim() === '' ? text : `${text}#${++n}#`);
  return turns.flatMap(({ texts, steps }) => {
    const user: ModelEntry = { role: 'user', content: texts.map((text) => ({ type: 'text', text: numbered(text) })) };
    return [user, ...steps.flatMap((one) => stepEntries(one, server, numbered, () => ++n))];
  });
}

function stepEntries(
  { text, calls, data: kind, order }: Turn['steps'][number],
  { config: { provider, model = '' }, reasons }: Server,
  numbered: (text: string) => string,
  next: () => number,
): ModelEntry[] {
  const said = numbered(text);
  const asked = calls.map((one) => ({ ...one, toolCallId: `call_${String(next()).padStart(26, '0')}` }));
  const content: MessagePart[] = [
    ...(said === '' ? [] : [{ type: 'text' as const, text: said }]),
    ...asked.map(({ toolCallId, tool, input }) => ({ type: 'tool_call' as const, toolCallId, tool, input })),
  ];
  const providerData = {
    provider,
    model: kind === 'own' ? model : 'another',
    parts: [
      ...(reasons ? [REASONING] : []),
      ...(said === '' ? [] : [{ type: 'text', length: said.length }]),
      ...asked.map(({ ownId, tool }, at) => ({
        type: 'toolCall',
        id: model.startsWith('kimi') ? `functions.${tool}:${at}` : ownId,
      })),
    ],
    ...(reasons && provider === 'openai-compatible' && { chat: { reasoningIn: 'reasoning_content', message: {} } }),
  };
  const results = asked
    .filter(({ hasResult }) => hasResult)
    .map(
      ({ toolCallId, outcome }): MessagePart => ({
        type: 'tool_result',
        toolCallId,
        ...outcome,
        ...(typeof outcome.output === 'string' && { output: numbered(outcome.output) }),
      }),
    );
  const inOrder = order === 'reversed' ? results.toReversed() : results;
  const tools: ModelEntry[] =
    order === 'apart'
      ? inOrder.map((result) => ({ role: 'tool', content: [result] }))
      : inOrder.length > 0
        ? [{ role: 'tool', content: inOrder }]
        : [];
  const steering: ModelEntry = { role: 'user', content: [{ type: 'text', text: numbered('Wait') }] };
  return [
    { role: 'assistant', content, ...(kind !== 'none' && { providerData }) },
    ...(order === 'late' ? [steering] : []),
    ...tools,
  ];
}

async function sent(
  config: Model,
  transcript: readonly ModelEntry[],
  { instructions = 'Be brief.', isMarked = false } = {},
) {
  const modelCall: ModelCall = {
    organizationId: '',
    sessionId: 'ses_1',
    environment: 'production',
    config,
    instructions,
    tools: [],
    limits: { maxOutputTokens: null },
    outputSchema: null,
    transcript,
    callsBefore: 0,
  };
  const provider = providerOf(config.provider)!;
  const request = await unsentRequest(provider, modelCall, placeholderFiles(modelCall), { isMarked });
  return JSON.parse(request!.init.body as string) as never;
}

const REASONING = {
  type: 'reasoning',
  text: 'hm',
  metadata: {
    anthropic: { signature: 'S' },
    amazonBedrock: { signature: 'S' },
    openai: { itemId: 'rs_1', reasoningEncryptedContent: 'E' },
  },
};

const runs = { numRuns: 60 };

describe.each(servers)('%s', (_name, server) => {
  const { config, refusal } = server;
  test('takes any history, with all of its texts, calls and results', async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.constantFrom('Be brief.', '', ' \n'), async (turns, instructions) => {
        const transcript = entriesOf(turns, server);
        const body = await sent(config, transcript, { instructions });
        expect(refusal(body), JSON.stringify(body)).toBeUndefined();
        const text = JSON.stringify(body);
        const numbers = JSON.stringify(transcript).match(/#\d+#/g) ?? [];
        for (const number of numbers) expect(text).toContain(number);
      }),
      runs,
    );
  });

  test('takes a longer history with the same beginning: only its last message may differ', async () => {
    await fc.assert(
      fc.asyncProperty(history, turn, async (turns, next) => {
        const all = entriesOf([...turns, next], { ...server, reasons: false });
        const part = all.slice(0, entriesOf(turns, { ...server, reasons: false }).length);
        const [shorter, longer] = [messagesIn(await sent(config, part)), messagesIn(await sent(config, all))];
        expect(longer.slice(0, shorter.length - 1)).toEqual(shorter.slice(0, -1));
      }),
      runs,
    );
  });

  test('takes a request with marks that has each message where the request has it', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (turns) => {
        const transcript = entriesOf(turns, server).map((entry, at) => ({ ...entry, messageId: uuid(at) }));
        const of = new Map(
          transcript.flatMap(({ content, messageId }) =>
            numbersIn(content).map((number) => [number, messageId] as const),
          ),
        );
        const [plain, marked] = [
          messagesIn(await sent(config, transcript)),
          messagesIn(await sent(config, transcript, { isMarked: true })),
        ];
        for (const [one, other] of elementsOf(plain, marked)) {
          const messages = [...new Set(numbersIn(one).map((number) => of.get(number)))];
          expect(markedIn(other)).toEqual(expect.arrayContaining(messages));
        }
        expect(numbersIn(marked)).toEqual([]);
        const all = transcript.filter(({ content }) => numbersIn(content).length > 0);
        expect(markedIn(marked)).toEqual(expect.arrayContaining(all.map(({ messageId }) => messageId)));
      }),
      { numRuns: 20 },
    );
  });
});

const uuid = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const numbersIn = (value: unknown): string[] => JSON.stringify(value).match(/#\d+#/g) ?? [];

/** The elements of all lists in a value, each with the one at the same place of another. */
function elementsOf(one: unknown, other: unknown): [unknown, unknown][] {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null) return [];
  if (Array.isArray(one)) {
    expect(other).toHaveLength(one.length);
    const list = other as unknown[];
    return one.flatMap((element, at) => [[element, list[at]] as [unknown, unknown], ...elementsOf(element, list[at])]);
  }
  return Object.entries(one).flatMap(([name, value]) => elementsOf(value, (other as Record<string, unknown>)[name]));
}

/** Without the marks of a cache, which move. */
function messagesIn(body: { messages?: unknown[]; input?: unknown[]; contents?: unknown[] }): unknown[] {
  const messages = body.messages ?? body.input ?? body.contents ?? [];
  return JSON.parse(
    JSON.stringify(messages, (name, value) => (name === 'cache_control' ? undefined : withoutCachePoints(value))),
  );
}

/** Bedrock's are elements of their own. */
function withoutCachePoints(value: unknown): unknown {
  return Array.isArray(value) ? value.filter((one) => one?.cachePoint === undefined) : value;
}
