/** A turn of a session from your own route, for `useChat` with the AI SDK's own transport. */
import type { UIMessageChunk } from 'ai';
import {
  openStream,
  type StreamNodeResponse,
  type StreamResponseOptions,
  sendResponse,
  sseResponse,
} from '../sse-response.ts';
import type { SessionStream } from '../stream.ts';
import { type TurnStreamOptions, toUIMessageChunks } from './turn-stream.ts';

export type UIMessageStreamResponseOptions = TurnStreamOptions & StreamResponseOptions;

/**
 * Responds with one turn as a UI message stream of the AI SDK (version 1 of its protocol): text, reasoning, tool calls in their
 * states, approvals, files, and how the turn ended.
 *
 *     const { session } = await client.sessions.sendMessage(sessionId, { content });
 *     const stream = client.sessions.stream(sessionId, { cursor: `turn_${session.turn}:seq_0` });
 *     return await toUIMessageStreamResponse(stream, { turn: session.turn });
 *
 * With `to`, it writes to a response of `node:http` or Express. If nothing follows in the session, the response is 204. A client
 * that leaves ends the request to the service, not the turn.
 *
 * @throws NotFoundError, AuthenticationError … of the service, before anything is written
 */
export function toUIMessageStreamResponse(
  stream: SessionStream,
  options?: UIMessageStreamResponseOptions,
): Promise<Response>;
export function toUIMessageStreamResponse(
  stream: SessionStream,
  options: UIMessageStreamResponseOptions & { to: StreamNodeResponse },
): Promise<void>;
export async function toUIMessageStreamResponse(
  stream: SessionStream,
  {
    to,
    request = to?.req,
    headers,
    sleep,
    ...options
  }: UIMessageStreamResponseOptions & { to?: StreamNodeResponse } = {},
): Promise<unknown> {
  const { isOver, envelopes, close } = await openStream(stream, request?.signal, undefined);
  const own = { ...headers, 'x-vercel-ai-ui-message-stream': 'v1' };
  const response = isOver
    ? new Response(null, { status: 204, headers: own })
    : sseResponse(eventsOf(toUIMessageChunks(envelopes, options)), close, { headers: own, sleep });
  if (!to) return response;
  await sendResponse(response, to);
  return undefined;
}

async function* eventsOf(chunks: AsyncIterable<UIMessageChunk>): AsyncGenerator<string, void, undefined> {
  for await (const chunk of chunks) yield `data: ${JSON.stringify(chunk)}\n\n`;
  yield 'data: [DONE]\n\n';
}
