// Server-Sent Events: `id` the cursor, `event: session.chunks`, `data` the envelope (api.md section 6).

import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { JournalStream } from '../../journal/live.ts';
import { closedSignal } from './closed.ts';
import type { Write } from './unread-bound.ts';

// Proxies close what is silent for longer than half a minute or so, and readers know by it that the service is there.
const HEARTBEAT_MS = 10_000;

/** Writes until the stream is over or the reader goes. A reader that is slow is waited for; nothing is dropped. */
export async function writeEvents(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  over: AbortSignal,
  write: Write,
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
  let isWithinEvent = false;
  // Only when nothing waits to be taken: the reader has something to read then. And never within an event, whose next part may have
  // to be read from the journal.
  const heartbeat = setInterval(
    () => response.writableLength > 0 || isWithinEvent || response.write(': here\n'),
    HEARTBEAT_MS,
  );
  try {
    for await (const { cursor, json, isFirst, isLast } of stream.read(end)) {
      isWithinEvent = !isLast;
      const start = isFirst ? `id: ${cursor}\nevent: session.chunks\ndata: ` : '';
      if (typeof json === 'string') {
        await write(`${start}${json}\n\n`, end);
      } else {
        // By itself: joined with what stands around it, it would be held twice.
        if (start !== '') response.write(start);
        await write(json, end);
        if (isLast) response.write('\n\n');
      }
    }
  } catch (error) {
    if (!end.aborted) throw error;
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
}

/** Browsers and our client send the last cursor in this header when they come back; it is newer than the one in the URL. */
export function withLastEventId(input: Record<string, unknown>, headers: IncomingHttpHeaders): Record<string, unknown> {
  const header = headers['last-event-id'];
  return header === undefined || header === '' ? input : { ...input, cursor: header };
}
