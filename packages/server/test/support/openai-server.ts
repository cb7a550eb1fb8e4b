/**
 * A server of OpenAI's streaming chat completions, which gives the responses that a test scripts:
 *
 *   const server = await startOpenAiServer();
 *   server.next(refuse(429, { headers: { 'retry-after': '2' } }), respond({ text: ['Hel', 'lo'] }));
 *   … { provider: 'openai-compatible', model: 'any', baseUrl: server.url } …
 *   server.requests[0].body.messages
 *
 * A reply is a function of the request and the stream; `respond`, `refuse` and `raw` create the common ones.
 */
import type { ServerResponse } from 'node:http';
import * as provider from './provider-server.ts';
import { begin, pieces, textOfInput, write } from './provider-server.ts';

export { raw, refuse } from './provider-server.ts';

/** The parts of the request's body that tests read. */
export interface ChatRequest {
  model: string;
  messages: {
    role: string;
    content: string | null;
    tool_call_id?: string;
    tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  }[];
  tools?: { type: string; function: { name: string; description: string; parameters: Record<string, unknown> } }[];
  stream?: boolean;
  stream_options?: { include_usage: boolean };
  [setting: string]: unknown;
}

export type Reply = provider.Reply<ChatRequest>;
export type OpenAiServer = provider.ProviderServer<ChatRequest>;

/** `url` ends with `/v1`. */
export function startOpenAiServer(fallback?: Reply): Promise<OpenAiServer> {
  return provider.startProviderServer('/v1', fallback);
}

export interface ChatResponse {
  /** Each a delta of its own. */
  text?: string | string[];
  /** Each is a separate delta, before the text. */
  reasoning?: string[];
  /** What the model says instead of a response; each is a separate delta. */
  refusal?: string[];
  /** Sent in pieces: the name with the first piece, the arguments over several, with those of different calls interleaved. */
  toolCalls?: { name: string; arguments: unknown }[];
  /** Default: `tool_calls` if there are calls, otherwise `stop`. null: the stream ends without a finish reason. */
  finishReason?: string | null;
  usage?: { prompt: number; completion: number; cached?: number } | null;
  /** How the stream ends: completely; closed cleanly, or reset, before the finish reason; or never. */
  end?: 'done' | 'cut' | 'reset' | 'hang';
}

/** Ids of responses are unique, as a provider's are. */
let responses = 0;

/** A streamed response. */
export function respond(given: ChatResponse): Reply {
  return async (response, { body }) => {
    const { end = 'done' } = given;
    responses += 1;
    const number = responses;
    const id = `chatcmpl-${number}`;
    begin(response);
    const chunk = (choice: object | null, more: object = {}) =>
      send(response, {
        id,
        object: 'chat.completion.chunk',
        created: 1,
        model: body.model,
        service_tier: 'default',
        system_fingerprint: 'fp_1',
        choices: choice === null ? [] : [{ index: 0, logprobs: null, finish_reason: null, ...choice }],
        // Every chunk but the last has it, if the request asked for usage.
        ...(body.stream_options?.include_usage && { usage: null }),
        obfuscation: 'x1',
        ...more,
      });
    await chunk({ delta: { role: 'assistant', content: '', refusal: null } });
    for (const delta of given.reasoning ?? []) await chunk({ delta: { reasoning_content: delta } });
    for (const delta of [given.text ?? []].flat()) await chunk({ delta: { content: delta } });
    for (const delta of given.refusal ?? []) await chunk({ delta: { refusal: delta } });
    for (const delta of callDeltas(given.toolCalls ?? [], number)) await chunk({ delta: { tool_calls: [delta] } });
    if (end === 'hang') return;
    if (end === 'reset') return void response.socket?.resetAndDestroy();
    if (end === 'done') {
      const reason =
        given.finishReason === undefined ? (given.toolCalls?.length ? 'tool_calls' : 'stop') : given.finishReason;
      if (reason !== null) await chunk({ delta: {}, finish_reason: reason });
      const usage = given.usage === undefined ? { prompt: 10, completion: 5 } : given.usage;
      if (usage && body.stream_options?.include_usage) {
        await chunk(null, {
          usage: {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.prompt + usage.completion,
            prompt_tokens_details: { cached_tokens: usage.cached ?? 0, audio_tokens: 0 },
            completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 0 },
          },
        });
      }
      await write(response, 'data: [DONE]\n\n');
    }
    response.end();
  };
}

function send(response: ServerResponse, event: unknown): Promise<void> {
  return write(response, `data: ${JSON.stringify(event)}\n\n`);
}

/** Arguments in pieces of three characters, one piece of each call in rotation. */
function callDeltas(calls: NonNullable<ChatResponse['toolCalls']>, response: number): object[] {
  const deltas: object[] = calls.map(({ name }, index) => ({
    index,
    id: `call_${response}_${index}`,
    type: 'function',
    function: { name, arguments: '' },
  }));
  const inPieces = calls.map((call) => pieces(textOfInput(call.arguments)));
  for (let at = 0; inPieces.some((parts) => at < parts.length); at += 1) {
    for (const [index, parts] of inPieces.entries()) {
      if (at < parts.length) deltas.push({ index, function: { arguments: parts[at] } });
    }
  }
  return deltas;
}

/** The format as a `Wire`, the shape that all formats share. It has no seals. */
export const chatCompletions: provider.Wire = {
  basePath: '/v1',
  respond({ parts = [], stop, usage, end = 'done' }) {
    const calls = parts.flatMap((part) => ('call' in part ? [{ name: part.call, arguments: part.input }] : []));
    const isError = end === 'overloaded' || end === 'rateLimited';
    const reply = respond({
      reasoning: parts.flatMap((part) => ('reasoning' in part ? part.reasoning : [])),
      text: parts.flatMap((part) => ('text' in part ? part.text : [])),
      toolCalls: calls,
      ...(stop && { finishReason: stop === 'maxOutputTokens' ? 'length' : 'content_filter' }),
      ...(usage && { usage: { prompt: usage.input, completion: usage.output, cached: usage.cached } }),
      end: isError ? 'hang' : end,
    });
    return async (response, request) => {
      await reply(response, request as unknown as provider.RecordedRequest<ChatRequest>);
      if (!isError) return;
      await send(response, openAiError(end === 'overloaded' ? 500 : 429, 'Try again'));
      response.end();
    };
  },
  error: openAiError,
};

/** The body of OpenAI's errors in both its APIs, and the error event in a stream of chat completions. */
export function openAiError(status: number, message: string): object {
  const [type, code] = errorWords[status] ?? ['server_error', null];
  return { error: { message, type, param: null, code } };
}

/** `type` and `code`. A rate limit counts requests or tokens. */
const errorWords: Record<number, [string, string | null]> = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  404: ['invalid_request_error', 'model_not_found'],
  429: ['requests', 'rate_limit_exceeded'],
};
