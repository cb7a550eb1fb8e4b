// Servers of models that refuse what theirs refuse, and answer by what the last message asks for: "LOOK" calls a tool, "BOTH" calls it
// twice after a text of white space, anything else and the results of tools get a text. A request without tools is for a summary.
import { createHash } from 'node:crypto';
import { type Model, providerFacts } from '@signalbox/contract';
import type { Target } from '../../../src/models/model/targets.ts';
import { anthropicMessages } from '../anthropic-wire.ts';
import { converse } from '../converse-wire.ts';
import { generateContent } from '../google-wire.ts';
import {
  type ProviderServer,
  type RecordedRequest,
  type Reply,
  type ResponsePart,
  raw,
  refuse,
  startProviderServer,
  type Wire,
} from '../provider-server.ts';
import { responses } from '../responses-wire.ts';
import type { Entrance } from './entrances.ts';
import { toolsRefusal } from './tools.ts';
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
} from './transcript.ts';

type Body = Record<string, unknown>;
const providers = ['openai', 'anthropic', 'google', 'azure', 'vertex', 'bedrock'] as const;
type Provider = (typeof providers)[number];
export type StrictServerName = ChatServer | Provider;

export interface StrictServer extends ProviderServer {
  /** For an agent. */
  readonly model: Model;
  /** What it has refused. */
  readonly refusals: Refusal[];
}

export const strictServers: readonly StrictServerName[] = [
  'anthropic',
  'google',
  ...(Object.keys(chatServers) as ChatServer[]).filter((name) => name !== 'openai'),
  'openai',
  'azure',
  'vertex',
  'bedrock',
];

const isProvider = (name: StrictServerName): name is Provider => (providers as readonly string[]).includes(name);

/** Where each receives requests, as it documents; of one that people run themselves, by default. */
export const endpoints: Readonly<Record<string, string>> = {
  openrouter: 'openrouter.ai/api/v1/chat/completions',
  groq: 'api.groq.com/openai/v1/chat/completions',
  mistral: 'api.mistral.ai/v1/chat/completions',
  xai: 'api.x.ai/v1/chat/completions',
  deepseek: 'api.deepseek.com/v1/chat/completions',
  moonshot: 'api.moonshot.ai/v1/chat/completions',
  together: 'api.together.ai/v1/chat/completions',
  fireworks: 'api.fireworks.ai/inference/v1/chat/completions',
  ollama: 'localhost:11434/v1/chat/completions',
  vllm: 'localhost:8000/v1/chat/completions',
  'lm-studio': 'localhost:1234/v1/chat/completions',
  'llama.cpp': 'localhost:8080/v1/chat/completions',
  litellm: 'localhost:4000/v1/chat/completions',
};

export async function startStrictServer(name: StrictServerName, entrance?: Entrance): Promise<StrictServer> {
  const refusals: Refusal[] = [];
  const kind = isProvider(name) ? providerKind(name) : chatKind(name);
  const server = await startProviderServer(kind.basePath, async (response, request) => {
    const refusal = entrance?.(request) ?? kind.refusal(request.body) ?? toolsRefusal(kind.target, request.body);
    if (refusal) refusals.push(refusal);
    const reply = refusal ? refuse(refusal.status, refusal) : kind.reply(partsFor(request), request.body);
    await reply(response, request);
  });
  return { ...server, refusals, model: { ...kind.model, baseUrl: server.url } as Model };
}

interface Kind {
  basePath: string;
  /** Whose rules for tools it has. */
  target: Target;
  model: Pick<Model, 'provider'> & { model: string; settings?: object };
  refusal(body: Body): Refusal | undefined;
  reply(parts: ResponsePart[], body: Body): Reply;
}

/** By the texts after the last results of tools. */
function partsFor({ body }: RecordedRequest): ResponsePart[] {
  const messages = (body.messages ?? body.input ?? body.contents) as unknown[];
  const last = JSON.stringify(messages.at(-1));
  const call = (q: string): ResponsePart => ({ call: 'look', input: { q } });
  const asked = body.tools === undefined && body.toolConfig === undefined ? '' : last;
  if (asked.includes('BOTH')) return [{ reasoning: ['hm'] }, { text: ['\n\n'] }, call('1'), call('2')];
  if (asked.includes('LOOK')) return [{ reasoning: ['hm'] }, { text: ['Let me see. '] }, call('1')];
  return [{ reasoning: ['h', 'm'] }, { text: ['An answer.'] }];
}

// ── The providers ─────────────────────────────────────────────────────────────────────────────────────────────────────

function providerKind(name: Provider): Kind {
  const { openai, anthropic, google } = providerFacts;
  const kinds: Record<Provider, [Wire, Target, string, (body: never) => Refusal | undefined, object?]> = {
    openai: [responses, 'openai', openai.own.exampleModel, responsesRefusal],
    azure: [responses, 'openai', 'our-deployment', responsesRefusal, { reasoning: 'low' }],
    anthropic: [anthropicMessages, 'anthropic', anthropic.own.exampleModel, anthropicRefusal, { reasoning: 'low' }],
    google: [generateContent, 'google', google.own.exampleModel, googleRefusal],
    bedrock: [
      converse,
      'bedrock',
      'us.anthropic.claude-sonnet-5-5-v1:0',
      (body: ConverseBody) => converseRefusal(body, 'anthropic'),
      { reasoning: 'low' },
    ],
    vertex: [generateContent, 'google', google.own.exampleModel, googleRefusal],
  };
  const [wire, target, model, refusal, settings] = kinds[name];
  const seals = new Set<string>();
  return {
    basePath: wire.basePath,
    target,
    model: { provider: name, model, ...(settings && { settings }) },
    refusal: (body) => refusal(body as never) ?? sealRefusal(target, body, seals),
    reply(parts, body) {
      const seal = sealOf(target, body, (body.messages as unknown[] | undefined)?.length ?? 0);
      seals.add(seal);
      // Google signs the first call; the others sign their reasoning.
      const sealed = parts.map((part) =>
        'reasoning' in part || (target === 'google' && 'call' in part) ? { ...part, seal } : part,
      );
      return wire.respond({ parts: sealed });
    },
  };
}

/** A seal of all that is before the response: Anthropic checks that none of it has changed. */
function sealOf(name: Target, { system, tools, messages }: Body, length: number): string {
  if (name !== 'anthropic') return Buffer.from(`seal of ${name}`).toString('base64');
  const before = JSON.stringify([system, tools, (messages as unknown[]).slice(0, length)], (key, value) =>
    key === 'cache_control' ? undefined : value,
  );
  return createHash('sha256').update(before).digest('base64');
}

function sealRefusal(name: Target, body: Body, seals: ReadonlySet<string>): Refusal | undefined {
  if (name === 'anthropic') {
    for (const [at, { content }] of (body as AnthropicBody).messages.entries()) {
      const wrong = content.find((block) => block.type === 'thinking' && block.signature !== sealOf(name, body, at));
      const message = `messages.${at}.content.0: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`;
      if (wrong) return { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message } } };
    }
  }
  if (name === 'google') {
    const signed = (body as GoogleBody).contents.flatMap(({ parts }) =>
      parts.flatMap((part) => ('thoughtSignature' in part ? [part] : [])),
    );
    const wrong = signed.find(
      (part) =>
        part.thoughtSignature !== 'skip_thought_signature_validator' && !seals.has(String(part.thoughtSignature)),
    );
    if (wrong)
      return {
        status: 400,
        body: { error: { code: 400, message: 'Corrupted thought signature.', status: 'INVALID_ARGUMENT' } },
      };
  }
  return undefined;
}

// ── Chat completions ──────────────────────────────────────────────────────────────────────────────────────────────────

const models: Partial<Record<ChatServer, string>> = {
  deepseek: 'deepseek-v4',
  moonshot: 'kimi-k2.6',
  'vllm with Llama’s template': 'meta-llama/Llama-3.1-8B-Instruct',
};

const targets: Partial<Record<ChatServer, Target>> = {
  'azure chat': 'azure',
  mistral: 'mistral',
  groq: 'groq',
  xai: 'xai',
  deepseek: 'deepseek',
  moonshot: 'moonshot',
  openrouter: 'openrouter',
};

/** What each sends besides text and calls. */
const fieldsOf: Partial<Record<ChatServer, (text: string) => object>> = {
  deepseek: (text) => ({ reasoning_content: text }),
  moonshot: (text) => ({ reasoning_content: text }),
  'vllm with Qwen’s template': (text) => ({ reasoning_content: text }),
  groq: (text) => ({ reasoning: text }),
  openrouter: (text) => ({
    reasoning: text,
    reasoning_details: [{ type: 'reasoning.text', index: 0, text, format: 'unknown' }],
  }),
};

function chatKind(name: ChatServer): Kind {
  let count = 0;
  /** The reasoning of each response with calls, by the id of its first call. */
  const thoughts = new Map<string, object>();
  const idOf: Partial<Record<ChatServer, () => string>> = {
    moonshot: () => `functions.look:${count++}`,
    mistral: () => `D681Pe${String(count++).padStart(3, '0')}`,
    openrouter: () => `D681Pe${String(count++).padStart(3, '0')}`,
  };
  const nextId = idOf[name] ?? (() => `call_${count++}_of|any:form`);

  /** These refuse a transcript without their reasoning, or with another. */
  function reasoningRefusal({ messages }: ChatBody): Refusal | undefined {
    for (const message of messages) {
      const thought = thoughts.get(message.tool_calls?.[0]?.id ?? '');
      for (const [field, value] of Object.entries(thought ?? {})) {
        if (JSON.stringify(message[field]) !== JSON.stringify(value))
          return chatServers[name].refusal(`${field} must be passed back`);
      }
    }
    return undefined;
  }

  return {
    basePath: '/v1',
    target: targets[name] ?? 'chat',
    model: { provider: 'openai-compatible', model: models[name] ?? 'any' },
    refusal: (body) => chatRefusal(name, body as ChatBody) ?? reasoningRefusal(body as ChatBody),
    reply(parts) {
      const deltas: object[] = [];
      const text = parts.flatMap((part) => ('reasoning' in part ? part.reasoning : [])).join('');
      let calls = 0;
      for (const part of parts) {
        if ('reasoning' in part)
          deltas.push(...part.reasoning.flatMap((piece) => (fieldsOf[name] ? [fieldsOf[name](piece)] : [])));
        else if ('text' in part) deltas.push(...part.text.map((content) => ({ content })));
        else {
          const id = nextId();
          const { reasoning: _, ...thought } = { reasoning: undefined, ...fieldsOf[name]?.(text) };
          const isKept = name === 'moonshot' || name === 'openrouter';
          if (calls === 0 && isKept) thoughts.set(id, thought);
          deltas.push({
            tool_calls: [
              {
                index: calls++,
                id,
                type: 'function',
                function: { name: part.call, arguments: JSON.stringify(part.input) },
              },
            ],
          });
        }
      }
      const chunk = (choice: object) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'any', choices: [choice] })}\n\n`;
      return raw([
        ...deltas.map((delta) => chunk({ index: 0, delta, finish_reason: null })),
        chunk({ index: 0, delta: {}, finish_reason: calls > 0 ? 'tool_calls' : 'stop' }),
        'data: [DONE]\n\n',
      ]);
    },
  };
}
