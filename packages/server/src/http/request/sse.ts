// Server-Sent Events: `event: session.chunks`, `data` the envelope that webhooks get too, `id` the cursor. The response to a change
// begins with `event: session`, `data` what it would be as JSON.
//
// The id comes last. Some clients take it as soon as they read it, and would resume after an event that was cut off in its data.

import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { JournalStream } from '../../journal/live.ts';
import { closedSignal } from './closed.ts';
import type { Write } from './unread-bound.ts';

// Proxies close connections that are silent for about 30 seconds, and clients notice by it that the service is gone.
const HEARTBEAT_MS = 10_000;

/** The response to a change, as JSON. */
export interface FirstEvent {
  readonly status: number;
  readonly body: string;
}

/** Writes until the stream ends or the client leaves. It waits for a slow client; nothing is dropped. */
export async function writeEvents(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  over: AbortSignal,
  write: Write,
  stream: JournalStream,
  first?: FirstEvent,
): Promise<void> {
  // Headers that are passed here, rather than set one by one, are not kept in memory while the stream is open.
  response.writeHead(first?.status ?? 200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    // The client reconnects on a new connection, which may reach another node. Without this header a proxy could send a request on
    // the connection that is about to close. The response to a change ends by itself, soon, so its connection can be used again.
    ...(first === undefined && { connection: 'close' }),
  });
  if (response.req.method === 'HEAD') return void response.end();
  // Sent separately, the headers are kept as one string, not as the fifty strings it was built from. A response that ends soon saves
  // the write.
  if (first === undefined) response.flushHeaders();
  // Sent at once, so that the client knows that it is connected. The comment has no blank line after it, which some clients would
  // take for an empty message.
  response.write(first === undefined ? ': connected\n' : `event: session\ndata: ${first.body}\n\n`);
  const end = AbortSignal.any([closedSignal(response), over]);
  let isWithinEvent = false;
  // Only if nothing is buffered (otherwise the client has something to read), and never within an event, whose next part may still
  // have to be read from the journal.
  const heartbeat = setInterval(
    () => response.writableLength > 0 || isWithinEvent || response.write(': here\n'),
    HEARTBEAT_MS,
  );
  try {
    for await (const { cursor, json, isFirst, isLast } of stream.read(end)) {
      if (json === '') {
        await write(`id: ${cursor}\n\n`, end);
        continue;
      }
      isWithinEvent = !isLast;
      const start = isFirst ? 'event: session.chunks\ndata: ' : '';
      const rest = `\nid: ${cursor}\n\n`;
      if (typeof json === 'string') {
        await write(`${start}${json}${rest}`, end);
      } else {
        // Written separately: joined with the text around it, it would be in memory twice.
        if (start !== '') response.write(start);
        await write(json, end);
        if (isLast) response.write(rest);
      }
    }
  } catch (error) {
    if (!end.aborted) throw error;
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
}

/** Browsers and our client send the last cursor in this header when they reconnect; it is newer than the one in the URL. */
export function withLastEventId(input: Record<string, unknown>, headers: IncomingHttpHeaders): Record<string, unknown> {
  const header = headers['last-event-id'];
  return header === undefined || header === '' ? input : { ...input, cursor: header };
}
