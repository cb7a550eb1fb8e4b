/** A session's stream from your own server, for browsers that have no key. */
import {
  lastEventId,
  openStream,
  type StreamNodeResponse,
  type StreamResponseOptions,
  sendResponse,
  sseResponse,
} from './sse-response.ts';
import type { SessionStream } from './stream.ts';
import type { Envelope } from './types.generated.ts';

/**
 * Responds with a session's chunks as Server-Sent Events, as the service does: `EventSource` and every other client of it resume
 * after the last event that they received. Check before that the user may read the session: the stream has all of it.
 *
 *     // Next.js, Hono, SvelteKit
 *     return await toEventStreamResponse(client.sessions.stream(sessionId), { request });
 *     // Express, node:http
 *     await toEventStreamResponse(client.sessions.stream(sessionId), { to: response });
 *
 * If the session has ended and nothing follows, the response is 204, after which `EventSource` does not connect again. A client
 * that leaves ends the request to the service.
 *
 * @throws NotFoundError, AuthenticationError … of the service, before anything is written
 */
export function toEventStreamResponse(stream: SessionStream, options?: StreamResponseOptions): Promise<Response>;
export function toEventStreamResponse(
  stream: SessionStream,
  options: StreamResponseOptions & { to: StreamNodeResponse },
): Promise<void>;
export async function toEventStreamResponse(
  stream: SessionStream,
  { to, request = to?.req, ...options }: StreamResponseOptions & { to?: StreamNodeResponse } = {},
): Promise<unknown> {
  const { isOver, envelopes, close } = await openStream(stream, request?.signal, lastEventId(request));
  const response = isOver
    ? new Response(null, { status: 204, headers: options.headers ?? {} })
    : sseResponse(eventsOf(envelopes), close, options);
  if (!to) return response;
  await sendResponse(response, to);
  return undefined;
}

async function* eventsOf(envelopes: AsyncIterable<Envelope>): AsyncGenerator<string, void, undefined> {
  for await (const envelope of envelopes) {
    // The id comes last: some clients take it at once, and would resume after an event that was cut off in its data.
    yield `event: session.chunks\ndata: ${JSON.stringify(envelope)}\nid: ${envelope.cursor}\n\n`;
  }
}
