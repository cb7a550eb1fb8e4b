/**
 * Streams a session's journal.
 *
 * The response to a change, such as a new session, can be the beginning of such a stream. That stream also ends when the session is
 * idle.
 *
 * One iteration uses one or more connections. Each starts after the cursor of the last envelope returned, so nothing is lost;
 * repeated chunks are dropped by position, so nothing is returned twice. A connection ends with the terminal status or with 204
 * (nothing can follow), which both end the iteration; with the position of a terminal status that is not of the types, after which the
 * next connection gets 204; or it is lost: cut, closed by a server that restarts, or silent although
 * the service sends a comment every 10 s. After a lost connection comes a pause and the next one.
 */

import { isAfter } from './cursor.ts';
import { dataOf, envelopeIn, eventsIn, openEvents, type StreamedChange } from './open-events.ts';
import { ReconnectBackoff } from './reconnect-backoff.ts';
import type { ServerSentEvent } from './sse.ts';
import { connectionError, type Input, type RequestOptions, type Result, type Transport } from './transport.ts';
import type { ChunkType, Envelope, Session, SessionStatus } from './types.generated.ts';

export interface StreamParams {
  /** Start after this position (`turn_1:seq_12`). Default: at the session's first chunk. */
  cursor?: string | null | undefined;
  /** Only chunks of these types. Default: all. */
  types?: readonly ChunkType[] | undefined;
  /** Called when a connection is open, and when it is lost, for example to show it to the user. */
  onConnection?: ((state: 'open' | 'lost') => void) | undefined;
}

const ended: ReadonlySet<SessionStatus> = new Set(['completed', 'failed', 'cancelled']);

type Events = AsyncGenerator<ServerSentEvent, void, undefined>;

/**
 * Makes a change, and follows what the session then does.
 *
 * @throws what the change throws
 */
export async function changeAndStream<N extends StreamedChange>(
  transport: Transport,
  change: N,
  input: Input<N>,
  options: RequestOptions = {},
): Promise<Result<N> & { stream: SessionStream }> {
  const events = eventsIn(await openEvents(transport, change, input, options), transport);
  try {
    for (let next = await events.next(); !next.done; next = await events.next()) {
      if (next.value.event !== 'session') continue;
      const result = dataOf<Result<N> & { session: Session }>(next.value);
      return { ...result, stream: new SessionStream(transport, result.session, { events }, options) };
    }
    throw connectionError(new Error('the stream ended before its first event'));
  } catch (error) {
    await events.return();
    throw error;
  }
}

/** Envelopes in order, each once. Iterating over it again continues where it stopped. */
export class SessionStream implements AsyncIterable<Envelope> {
  readonly sessionId: string;
  readonly #transport: Transport;
  readonly #types: readonly ChunkType[] | undefined;
  readonly #onConnection: StreamParams['onConnection'];
  readonly #options: RequestOptions;
  /** It ends when the session is idle, too. */
  readonly #untilIdle: boolean;
  /** The first connection, if it is open already. */
  #events: Events | undefined;
  #isOver: boolean;
  #cursor: string | null;

  constructor(
    transport: Transport,
    session: string | Session,
    params: StreamParams & { events?: Events; untilIdle?: boolean },
    options: RequestOptions,
  ) {
    const known = typeof session === 'string' ? undefined : session;
    this.sessionId = typeof session === 'string' ? session : session.sessionId;
    this.#transport = transport;
    this.#types = params.types;
    this.#onConnection = params.onConnection;
    this.#options = options;
    this.#events = params.events;
    this.#untilIdle = params.untilIdle ?? known !== undefined;
    this.#isOver = known !== undefined && isOver(known.status, true);
    this.#cursor = params.cursor ?? known?.cursor ?? null;
  }

  /**
   * The position of the last envelope returned (keep it to resume later), or of later chunks of other types; null before the first.
   */
  get cursor(): string | null {
    return this.#cursor;
  }

  /**
   * The same stream for another reader: from another position, by default this one's, and until another signal aborts as well.
   */
  again({ cursor, signal, onConnection }: Omit<StreamParams, 'types'> & { signal?: AbortSignal } = {}): SessionStream {
    const signals = [this.#options.signal, signal].filter((each) => each !== undefined);
    return new SessionStream(
      this.#transport,
      this.sessionId,
      {
        cursor: cursor ?? this.#cursor,
        types: this.#types,
        onConnection: onConnection ?? this.#onConnection,
        untilIdle: this.#untilIdle,
      },
      { ...this.#options, ...(signals.length > 0 && { signal: AbortSignal.any(signals) }) },
    );
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Envelope, void, undefined> {
    const backoff = new ReconnectBackoff(this.#transport, this.#options);
    while (true) {
      try {
        // The response to a change ends with the work, and its connection can then be used again. Any other is left.
        const isResponse = this.#events !== undefined;
        const events = this.#events ?? (await this.#connect(backoff.options));
        this.#events = undefined;
        backoff.opened();
        if (!events) return;
        this.#onConnection?.('open');
        let isPastOthers = false;
        for await (const event of events) {
          if (event.data === '' && event.id !== undefined) isPastOthers = this.#moveTo(event.id);
          if (event.event !== 'session.chunks') continue;
          backoff.progress();
          const fresh = this.#advance(envelopeIn(event));
          if (fresh.chunks.some((chunk) => chunk.type === 'session.status' && isOver(chunk.status, this.#untilIdle))) {
            this.#isOver = true;
          }
          if (fresh.chunks.length > 0) yield fresh;
          if (this.#isOver && !isResponse) return;
        }
        if (this.#isOver) return;
        // Chunks of other types ended the stream. The next response says whether anything can follow them.
        if (isPastOthers) continue;
        throw connectionError(new Error('the stream ended before the session did'));
      } catch (error) {
        if (this.#isOver) return;
        if (!this.#options.signal?.aborted) this.#onConnection?.('lost');
        await backoff.pauseAfter(error);
      }
    }
  }

  /** Undefined if nothing can follow. */
  async #connect(options: RequestOptions): Promise<Events | undefined> {
    const query = { cursor: this.#cursor ?? undefined, types: this.#types?.join(',') };
    const input = { params: { sessionId: this.sessionId }, query };
    const connection = await openEvents(this.#transport, 'streamSession', input, options);
    if (connection.response.status !== 204) return eventsIn(connection, this.#transport);
    connection.close();
    return undefined;
  }

  /** Returns whether the cursor is after the previous one. */
  #moveTo(cursor: string): boolean {
    if (this.#cursor !== null && !isAfter(cursor, this.#cursor)) return false;
    this.#cursor = cursor;
    return true;
  }

  /** Moves the cursor to the envelope; returns the part of it that is after the previous cursor. */
  #advance(envelope: Envelope): Envelope {
    const before = this.#cursor;
    if (before === null) {
      this.#cursor = envelope.cursor;
      return envelope;
    }
    this.#moveTo(envelope.cursor);
    const chunks = envelope.chunks.filter((chunk) => isAfter(chunk, before));
    return chunks.length === envelope.chunks.length ? envelope : { ...envelope, chunks };
  }
}

function isOver(status: SessionStatus, untilIdle: boolean): boolean {
  return ended.has(status) || (untilIdle && status === 'idle');
}
