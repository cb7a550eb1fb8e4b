/**
 * Streams a session's journal.
 *
 * One iteration uses one or more connections. Each starts after the cursor of the last envelope returned, so nothing is lost;
 * repeated chunks are dropped by position, so nothing is returned twice. A connection ends with the terminal status or with 204
 * (nothing can follow), which both end the iteration, or it is lost: cut, closed by a server that restarts, or silent although
 * the service sends a comment every 10 s. After a lost connection comes a pause and the next one.
 */

import { readBody } from './body-stream.ts';
import { cursorOf, isAfter } from './cursor.ts';
import { envelopeIn, openEvents } from './open-events.ts';
import { ReconnectBackoff } from './reconnect-backoff.ts';
import { EventParser } from './sse.ts';
import { connectionError, type OpenResponse, type RequestOptions, type Transport } from './transport.ts';
import type { Chunk, ChunkType, Envelope, SessionStatus } from './types.generated.ts';

export interface StreamParams {
  /** Start after this position (`turn_1:seq_12`). Default: at the session's first chunk. */
  cursor?: string | null | undefined;
  /** Only chunks of these types. Default: all. */
  types?: readonly ChunkType[] | undefined;
  /** Called when a connection is open, and when it is lost, for example to show it to the user. */
  onConnection?: ((state: 'open' | 'lost') => void) | undefined;
}

const ended: ReadonlySet<SessionStatus> = new Set(['completed', 'failed', 'cancelled']);

/** Envelopes in order, each once. Iterating over it again continues where it stopped. */
export class SessionStream implements AsyncIterable<Envelope> {
  readonly sessionId: string;
  readonly #transport: Transport;
  readonly #types: readonly ChunkType[] | undefined;
  readonly #onConnection: StreamParams['onConnection'];
  readonly #options: RequestOptions;
  #cursor: string | null;

  constructor(transport: Transport, sessionId: string, params: StreamParams, options: RequestOptions) {
    this.sessionId = sessionId;
    this.#transport = transport;
    this.#types = params.types;
    this.#onConnection = params.onConnection;
    this.#options = options;
    this.#cursor = params.cursor ?? null;
  }

  /** The position of the last envelope returned (keep it to resume later); null before the first. */
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
      { cursor: cursor ?? this.#cursor, types: this.#types, onConnection: onConnection ?? this.#onConnection },
      { ...this.#options, ...(signals.length > 0 && { signal: AbortSignal.any(signals) }) },
    );
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Envelope, void, undefined> {
    const backoff = new ReconnectBackoff(this.#transport, this.#options);
    while (true) {
      try {
        const connection = await this.#connect(backoff.options);
        backoff.opened();
        if (connection.response.status === 204) {
          connection.close();
          return;
        }
        this.#onConnection?.('open');
        const parser = new EventParser();
        for await (const bytes of readBody(connection, this.#transport.sleep)) {
          for (const event of parser.push(bytes)) {
            if (event.event !== 'session.chunks') continue;
            backoff.progress();
            const fresh = this.#advance(envelopeIn(event));
            if (fresh.chunks.length > 0) yield fresh;
            if (fresh.chunks.some(isTerminal)) return;
          }
        }
        throw connectionError(new Error('the stream ended before the session did'));
      } catch (error) {
        if (!this.#options.signal?.aborted) this.#onConnection?.('lost');
        await backoff.pauseAfter(error);
      }
    }
  }

  #connect(options: RequestOptions): Promise<OpenResponse> {
    const query = { cursor: this.#cursor ?? undefined, types: this.#types?.join(',') };
    return openEvents(this.#transport, 'streamSession', { params: { sessionId: this.sessionId }, query }, options);
  }

  /** Moves the cursor to the envelope; returns the part of it that is after the previous cursor. */
  #advance(envelope: Envelope): Envelope {
    const before = this.#cursor;
    if (before === null) {
      this.#cursor = envelope.cursor;
      return envelope;
    }
    if (isAfter(envelope.cursor, before)) this.#cursor = envelope.cursor;
    const chunks = envelope.chunks.filter((chunk) => isAfter(cursorOf(chunk), before));
    return chunks.length === envelope.chunks.length ? envelope : { ...envelope, chunks };
  }
}

function isTerminal(chunk: Chunk): boolean {
  return chunk.type === 'session.status' && ended.has(chunk.status);
}
