// Server-Sent Events: `event: session.chunks`, `data` the envelope that webhooks get too, `id` the cursor. The response to a change
// begins with `event: session`, `data` what it would be as JSON.
//
// The id comes last. Some clients take it as soon as they read it, and would resume after an event that was cut off in its data.

import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { JournalStream, StreamPart, StreamReader } from '../../journal/stream.ts';
import { ApiError } from '../../lib/api-error.ts';
import { onceClosed } from '../connection/closed.ts';
import { type Outlet, outletOf, ResponseOutlet } from './outlet.ts';

// Proxies close connections that are silent for about 30 seconds, and clients notice by it that the service is gone.
const HEARTBEAT_MS = 10_000;

/** The response to a change, as JSON. */
export interface FirstEvent {
  readonly status: number;
  readonly body: string;
}

/** Sends the headers and what comes before the events. Undefined for a HEAD request, which is then over. */
export function beginEvents(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  first?: FirstEvent,
): Outlet | undefined {
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
  if (response.req.method === 'HEAD') {
    response.end();
    return undefined;
  }
  if (first) {
    const outlet = new ResponseOutlet(response);
    // Sent with the headers: a response that ends soon saves the write.
    outlet.write(`event: session\ndata: ${first.body}\n\n`);
    return outlet;
  }
  response.flushHeaders();
  const outlet = outletOf(response);
  // Sent at once, so that the client knows that it is connected. The comment has no blank line after it, which some clients would
  // take for an empty message.
  outlet.write(': connected\n');
  return outlet;
}

/** How an event stream is written. */
export interface EventStreamOptions {
  /** Counts bytes that wait for the client until the returned function is called. */
  wait(bytes: number): () => void;
  /** Called once, with the error if one ended the stream. */
  onEnd(error?: unknown): void;
}

/** Writes a stream until it ends or its client leaves. It waits for a slow client; nothing is dropped. */
export class EventStream {
  readonly #outlet: Outlet;
  readonly #reader: StreamReader;
  readonly #options: EventStreamOptions;
  readonly #heartbeat: NodeJS.Timeout;
  #isWithinEvent = false;
  /** Set while the client has no room. */
  #stopWaiting: (() => void) | undefined;
  #isOver = false;

  constructor(outlet: Outlet, stream: JournalStream, options: EventStreamOptions) {
    this.#outlet = outlet;
    this.#options = options;
    this.#heartbeat = setInterval(beat, HEARTBEAT_MS, this);
    this.#reader = stream.open(() => this.#writeAll());
  }

  /** It may be over when this returns. */
  start(): void {
    const { channel } = this.#outlet;
    channel.on('drain', () => this.#drained());
    onceClosed(channel, () => this.end());
    this.#writeAll();
  }

  /**
   * Writes a comment: only if nothing is buffered (otherwise the client has something to read), and never within an event, whose next
   * part may still have to be read from the journal.
   */
  beat(): void {
    if (this.#outlet.channel.writableLength === 0 && !this.#isWithinEvent) this.#outlet.write(': here\n');
  }

  /** The client resumes at its cursor. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#heartbeat);
    this.#stopWaiting?.();
    this.#reader.close();
    this.#outlet.end();
    this.#options.onEnd(error);
  }

  #writeAll(): void {
    try {
      while (!this.#stopWaiting && !this.#isOver) {
        const part = this.#reader.take();
        if (part) this.#write(part);
        else if (this.#reader.end) this.end(this.#reader.end.error);
        else return;
      }
    } catch (error) {
      this.end(error);
    }
  }

  #write({ cursor, json, isFirst, isLast }: StreamPart): void {
    const rest = `id: ${cursor}\n\n`;
    if (json !== '') this.#isWithinEvent = !isLast;
    const start = isFirst ? 'event: session.chunks\ndata: ' : '';
    if (json === '') this.#send(rest);
    else if (typeof json === 'string') this.#send(`${start}${json}\n${rest}`);
    else {
      // Written separately: joined with the text around it, it would be in memory twice.
      if (start !== '') this.#outlet.write(start);
      this.#send(json);
      if (isLast) this.#outlet.write(`\n${rest}`);
    }
  }

  #send(part: string | Buffer): void {
    if (!this.#outlet.write(part)) this.#stopWaiting = this.#options.wait(Buffer.byteLength(part));
  }

  #drained(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#writeAll();
  }
}

function beat(stream: EventStream): void {
  stream.beat();
}

/**
 * Browsers and our client send the last cursor in this header when they reconnect; it is newer than the one in the URL. An error about it
 * names the header.
 */
export async function withLastEventId<T>(
  input: Record<string, unknown>,
  headers: IncomingHttpHeaders,
  act: (input: Record<string, unknown>) => Promise<T>,
): Promise<T> {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return act(input);
  try {
    return await act({ ...input, cursor: header });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'invalid_cursor') throw error;
    const errors = error.errors?.map((one) => ({ ...one, path: one.path.replace(/^cursor$/, 'Last-Event-ID') }));
    const message = error.message.replace(/^cursor:/, 'Last-Event-ID:');
    throw new ApiError(error.code, message, errors ? { errors } : {});
  }
}
