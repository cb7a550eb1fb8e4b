/** Responses of your own server that are written while a session runs: as a `Response`, or to a response of `node:http`. */
import { deferred } from './deferred.ts';
import type { SessionStream } from './stream.ts';
import { sleep as realSleep, type Sleep } from './time.ts';
import type { Envelope } from './types.generated.ts';

/** The required part of a `Request`, or of a request of `node:http`. */
export interface StreamRequest {
  headers: { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;
  signal?: AbortSignal | undefined;
}

/** The required part of node's `ServerResponse`, and of Express's `Response`; in Fastify, `reply.raw` after `reply.hijack()`. */
export interface StreamNodeResponse {
  writeHead(status: number, headers: Record<string, string>): unknown;
  write(part: Uint8Array): boolean;
  end(): unknown;
  once(event: 'drain' | 'close', listener: () => void): unknown;
  off(event: 'drain' | 'close', listener: () => void): unknown;
  destroy(): unknown;
  readonly destroyed: boolean;
  readonly req?: StreamRequest | undefined;
}

export interface StreamResponseOptions {
  /** The request: its `Last-Event-ID` says where to resume, and the session is no longer read once it is aborted. */
  request?: StreamRequest | undefined;
  /** More headers of the response, such as CORS headers. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Replaces all waiting; for tests. */
  sleep?: Sleep | undefined;
}

/** A stream of a session that has been opened: an unknown session, for example, has already failed. */
export interface OpenedStream {
  /** Nothing can follow. */
  isOver: boolean;
  envelopes: AsyncIterable<Envelope>;
  /** Ends the request to the service. */
  close: () => void;
}

/** Opens the stream from `cursor`, by default its own. Rejects with the error of the service. */
export async function openStream(
  stream: SessionStream,
  signal: AbortSignal | undefined,
  cursor: string | undefined,
): Promise<OpenedStream> {
  const over = new AbortController();
  const connected = deferred();
  const events = stream
    .again({
      cursor,
      signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
      onConnection: (state) => state === 'open' && connected.resolve(),
    })
    [Symbol.asyncIterator]();
  const first = events.next();
  const isOver = await Promise.race([connected.promise.then(() => false), first.then(({ done }) => done === true)]);
  async function* rest(): AsyncGenerator<Envelope, void, undefined> {
    try {
      for (let next = await first; !next.done; next = await events.next()) yield next.value;
    } finally {
      over.abort();
    }
  }
  // The stream may never be read; then its failure is not an unhandled rejection.
  first.catch(() => {});
  return { isOver, envelopes: rest(), close: () => over.abort() };
}

export function lastEventId(request: StreamRequest | undefined): string | undefined {
  const { headers } = request ?? {};
  const value =
    typeof headers?.get === 'function'
      ? headers.get('last-event-id')
      : (headers as Record<string, string | undefined> | undefined)?.['last-event-id'];
  return value || undefined;
}

// Proxies close connections that are silent for about 30 seconds.
const heartbeatMs = 10_000;
const heartbeat = new TextEncoder().encode(': here\n');

/**
 * A response of Server-Sent Events. An event is only requested when the reader has room for it. `close` is called when the reader
 * leaves.
 */
export function sseResponse(
  events: AsyncIterator<string>,
  close: () => void,
  { headers = {}, sleep = realSleep }: Pick<StreamResponseOptions, 'headers' | 'sleep'>,
): Response {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<string>> | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode(': connected\n'));
      },
      async pull(controller) {
        next ??= events.next();
        const silence = new AbortController();
        const isSilent = sleep(heartbeatMs, silence.signal).then(
          () => true,
          () => false,
        );
        try {
          const event = await Promise.race([next, isSilent]);
          if (typeof event === 'boolean') return controller.enqueue(heartbeat);
          next = undefined;
          if (event.done) controller.close();
          else controller.enqueue(encoder.encode(event.value));
        } finally {
          silence.abort();
        }
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      ...headers,
    },
  });
}

/** Writes a response to one of `node:http`. Resolves at its end, also if the client has left. */
export async function sendResponse(response: Response, to: StreamNodeResponse): Promise<void> {
  const reader = response.body?.getReader();
  const left = deferred();
  const leave = () => {
    left.resolve();
    reader?.cancel().catch(() => {});
  };
  if (to.destroyed) return leave();
  to.once('close', leave);
  try {
    to.writeHead(response.status, Object.fromEntries(response.headers));
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      if (to.write(next.value)) continue;
      const drained = deferred();
      to.once('drain', drained.resolve);
      await Promise.race([drained.promise, left.promise]);
      to.off('drain', drained.resolve);
    }
    to.end();
  } catch (error) {
    // A response that ended would look complete.
    to.destroy();
    throw error;
  } finally {
    to.off('close', leave);
  }
}
