// Server-Sent Events: `id` the cursor, `event: session.chunks`, `data` the envelope (api.md section 6).

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { JournalStream } from '../journal/live.ts';
import { closedSignal } from './closed.ts';
import { writeText } from './unread.ts';

// Proxies close what is silent for longer than half a minute or so, and readers know by it that the service is there.
const HEARTBEAT_MS = 10_000;

/** Writes until the stream is over or the reader goes. A reader that is slow is waited for; nothing is dropped. */
export async function writeEvents(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  over: AbortSignal,
  stream: JournalStream,
): Promise<void> {
  // Given at once rather than set one by one, they are not kept for as long as the stream is open.
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    // Its reader comes back by another connection, which may lead to another node. Said before, or a proxy would send a request on
    // the connection that ends.
    connection: 'close',
  });
  if (response.req.method === 'HEAD') return void response.end();
  // By themselves, they are kept as one string, and not as the fifty that it was made of.
  response.flushHeaders();
  // Something at once, so that the reader's client knows that it is connected. No blank line ends a comment: some clients would take
  // it for an empty message.
  response.write(': connected\n');
  const end = AbortSignal.any([closedSignal(response), over]);
  // Only when nothing waits to be taken: the reader has something to read then, and it may be half an event.
  const heartbeat = setInterval(() => response.writableLength > 0 || response.write(': here\n'), HEARTBEAT_MS);
  try {
    for await (const { cursor, json } of stream.read(end)) {
      await writeText(response, `id: ${cursor}\nevent: session.chunks\ndata: ${json}\n\n`, end);
    }
  } catch (error) {
    if (!end.aborted) throw error;
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
}
