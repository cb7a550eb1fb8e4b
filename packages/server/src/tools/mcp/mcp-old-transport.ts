// The transport of the revision 2024-11-05: the server sends everything on one stream of events, and the client posts its messages to
// another address, which the first event names. It is not supported; it is recognized so that the author of an agent learns why.
import { createParser } from 'eventsource-parser';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../request/deadline.ts';
import { McpHttpError, McpUnsupported } from './mcp-failure.ts';
import type { McpSend } from './mcp-send.ts';

const TIMEOUT_SECONDS = 2;
/** The first event is a path. */
const MAX_BYTES = 16 * 1024;

/** The error to report instead of a refused handshake: a better one if the server speaks the old transport. */
export async function explainRefusal(
  error: unknown,
  send: McpSend,
  clock: Clock,
  signal: AbortSignal,
): Promise<unknown> {
  const mayBeOld = error instanceof McpHttpError && [400, 404, 405, 406, 415, 501].includes(error.status);
  if (!mayBeOld || signal.aborted) return error;
  const time = startDeadline(clock, TIMEOUT_SECONDS, signal);
  try {
    if (!(await startsWithEndpoint(send, time.signal))) return error;
  } catch {
    return error;
  } finally {
    time.end();
  }
  return new McpUnsupported(
    'The server speaks the older SSE transport, which is not supported. Use its address for streamable HTTP, often /mcp instead of /sse.',
  );
}

async function startsWithEndpoint(send: McpSend, signal: AbortSignal): Promise<boolean> {
  const response = await send({ method: 'GET', headers: { accept: 'text/event-stream' }, signal }, true);
  let first: string | undefined;
  const parser = createParser({
    onEvent({ event = 'message' }) {
      first ??= event;
    },
  });
  const decoder = new TextDecoder();
  let bytes = 0;
  // Leaving the loop early closes the connection.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (!response.ok || bytes > MAX_BYTES) return false;
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (first !== undefined) return first === 'endpoint';
  }
  return false;
}
