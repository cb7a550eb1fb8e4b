/**
 * A Session's journal, live (api.md section 6).
 *
 * One iteration is one or more connections. Each begins after the cursor of the last envelope handed out, so nothing is
 * lost; what a connection repeats is cut off by position, so nothing comes twice. A connection ends by the terminal
 * status (the iteration is over), by 204 (nothing can follow: over), or is lost: broken off, closed by a server that
 * restarts, or silent although the service sends a comment every 10 s. A lost one is followed by the next, after a pause.
 */
import { SignalboxError } from './errors.ts';
import { backoffMs, isPassing, retryAfterMs } from './retry.ts';
import { EventParser } from './sse.ts';
import { now } from './time.ts';
import { connectionError, type OpenResponse, type RequestOptions, type Transport } from './transport.ts';
import type { Chunk, ChunkType, Envelope, SessionStatus } from './types.generated.ts';

export interface StreamParams {
  /** Begin after this position (`turn_1:seq_12`); default: at the Session's first chunk. */
  cursor?: string | null | undefined;
  /** Only chunks of these types. Default: all. */
  types?: readonly ChunkType[] | undefined;
}

/** Three missed comments of the service: the connection is dead, whatever the network says. */
const silenceMs = 30_000;
/** Silence is looked for this often, rather than by a timer for each piece that arrives. */
const silenceTickMs = 10_000;
const longestPauseMs = 10_000;
const longestRetryAfterMs = 60_000;
/** About five minutes with the pauses above; then the service is away rather than restarting. */
const maxLostInARow = 32;

const ended: ReadonlySet<SessionStatus> = new Set(['completed', 'failed', 'cancelled']);

/** Envelopes in order, each once. Iterated over again, it goes on where it was left. */
export class SessionStream implements AsyncIterable<Envelope> {
  readonly sessionId: string;
  readonly #transport: Transport;
  readonly #types: readonly ChunkType[] | undefined;
  readonly #options: RequestOptions;
  #cursor: string | null;

  constructor(transport: Transport, sessionId: string, params: StreamParams, options: RequestOptions) {
    this.sessionId = sessionId;
    this.#transport = transport;
    this.#types = params.types;
    this.#options = options;
    this.#cursor = params.cursor ?? null;
  }

  /** The position of the last envelope handed out (keep it to resume later); null before the first. */
  get cursor(): string | null {
    return this.#cursor;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Envelope, void, undefined> {
    let begun = false;
    let lostInARow = 0;
    while (true) {
      let retryAfter: number;
      try {
        // The first connection fails as any call does; once the stream has begun, patience is longer.
        const connection = await this.#connect(begun ? { ...this.#options, maxRetries: 0 } : this.#options);
        begun = true;
        if (connection.response.status === 204) {
          connection.close();
          return;
        }
        for await (const events of this.#read(connection)) {
          lostInARow = 0;
          for (const envelope of events) {
            const fresh = this.#advance(envelope);
            if (fresh.chunks.length > 0) yield fresh;
            if (fresh.chunks.some(isTerminal)) return;
          }
        }
        throw connectionError(new Error('the stream ended before the Session did'));
      } catch (error) {
        // Where the caller's signal aborted, the pause below rejects with its reason.
        if (!begun || !(error instanceof SignalboxError) || !isPassing(error) || lostInARow >= maxLostInARow)
          throw error;
        retryAfter = Math.min(retryAfterMs(error.headers, now()) ?? 0, longestRetryAfterMs);
      }
      const pauseMs = Math.max(retryAfter, backoffMs(lostInARow, Math.random(), longestPauseMs));
      lostInARow++;
      await this.#transport.sleep(pauseMs, this.#options.signal);
    }
  }

  async #connect(options: RequestOptions): Promise<OpenResponse> {
    const connection = await this.#transport.open(
      'streamSession',
      {
        params: { sessionId: this.sessionId },
        query: { cursor: this.#cursor ?? undefined, types: this.#types?.join(',') },
      },
      options,
      { accept: 'text/event-stream' },
    );
    const { status, headers } = connection.response;
    const type = headers.get('content-type') ?? '';
    if (status === 204 || /^text\/event-stream\b/i.test(type)) return connection;
    connection.close();
    throw new SignalboxError({
      status,
      code: 'unexpected_response',
      detail: `The answer is not an event stream but ${type || 'of no content type'}: is something between that rewrites it?`,
      requestId: headers.get('x-request-id'),
      headers,
    });
  }

  /** The envelopes of one connection, by piece received: an empty array tells that the connection is alive. */
  async *#read(connection: OpenResponse): AsyncGenerator<Envelope[], void, undefined> {
    const reader = (connection.response.body as ReadableStream<Uint8Array>).getReader();
    const parser = new EventParser();
    const watch = new AbortController();
    let heard = true;
    let silent = false;
    const watchSilence = async () => {
      for (let quietMs = 0; quietMs < silenceMs; quietMs = heard ? 0 : quietMs + silenceTickMs) {
        heard = false;
        await this.#transport.sleep(silenceTickMs, watch.signal);
      }
      silent = true;
      connection.close();
    };
    watchSilence().catch(() => {});
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return;
        heard = true;
        yield [...parser.push(value)].filter(({ event }) => event === 'session.chunks').map(envelopeIn);
      }
    } catch (error) {
      if (error instanceof SignalboxError) throw error;
      throw connectionError(silent ? new Error(`nothing was heard for ${silenceMs} ms`) : error);
    } finally {
      watch.abort();
      connection.close();
    }
  }

  /** Moves the cursor to the envelope; answers with what of it lies after the cursor before. */
  #advance(envelope: Envelope): Envelope {
    const before = this.#cursor;
    if (before === null) {
      this.#cursor = envelope.cursor;
      return envelope;
    }
    if (isAfter(envelope.cursor, before)) this.#cursor = envelope.cursor;
    const chunks = envelope.chunks.filter(({ turn, seq }) => isAfter(`turn_${turn}:seq_${seq}`, before));
    return chunks.length === envelope.chunks.length ? envelope : { ...envelope, chunks };
  }
}

function envelopeIn({ data }: { data: string }): Envelope {
  try {
    return JSON.parse(data) as Envelope;
  } catch {
    throw new SignalboxError({
      status: 200,
      code: 'unexpected_response',
      detail: 'An event of the stream is not JSON',
    });
  }
}

function isTerminal(chunk: Chunk): boolean {
  return chunk.type === 'session.status' && ended.has(chunk.status);
}

function isAfter(cursor: string, other: string): boolean {
  const [turn, seq] = position(cursor);
  const [otherTurn, otherSeq] = position(other);
  return turn > otherTurn || (turn === otherTurn && seq > otherSeq);
}

function position(cursor: string): [turn: number, seq: number] {
  const [, turn, seq] = /^turn_(\d+):seq_(\d+)$/.exec(cursor) ?? [];
  return [Number(turn), Number(seq)];
}
