/**
 * Streams all sessions of an environment.
 *
 * The cursor is a time: after a lost connection, the next one starts with the chunks since then, so nothing is lost. Some of them were
 * received before; they are dropped by their positions, so nothing is returned twice. A position is kept for as long as its chunks may
 * come again: until the cursor is past their time.
 */

import { readBody } from './body-stream.ts';
import { isAfter } from './cursor.ts';
import { envelopeIn, openEvents } from './open-events.ts';
import { ReconnectBackoff } from './reconnect-backoff.ts';
import { EventParser } from './sse.ts';
import { connectionError, type RequestOptions, type Transport } from './transport.ts';
import type { ChunkType, Envelope } from './types.generated.ts';

export interface EnvironmentStreamParams {
  /** Start with the chunks of this time: the `cursor` of another stream of the environment, or any time. Default: now. */
  cursor?: string | null | undefined;
  /** Only chunks of these types. Default: the types of the environment's webhook subscription, or of a new one. */
  types?: readonly ChunkType[] | undefined;
  /** Only sessions of this agent. */
  agentId?: string | undefined;
  /** Called when a connection is open, and when it is lost. */
  onConnection?: ((state: 'open' | 'lost') => void) | undefined;
}

/** Envelopes of all sessions: for each session in order, each once. It does not end by itself. */
export class EnvironmentStream implements AsyncIterable<Envelope> {
  readonly environment: string;
  readonly #transport: Transport;
  readonly #params: EnvironmentStreamParams;
  readonly #options: RequestOptions;
  /** By session: the last chunk that was returned. */
  readonly #returned = new Map<string, { cursor: string; timestamp: string }>();
  #cursor: string | null;

  constructor(transport: Transport, environment: string, params: EnvironmentStreamParams, options: RequestOptions) {
    this.environment = environment;
    this.#transport = transport;
    this.#params = params;
    this.#options = options;
    this.#cursor = params.cursor ?? null;
  }

  /** A time that another stream can start with, without a gap; null before the first connection. */
  get cursor(): string | null {
    return this.#cursor;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Envelope, void, undefined> {
    const { types, agentId, onConnection } = this.#params;
    const backoff = new ReconnectBackoff(this.#transport, this.#options);
    while (true) {
      try {
        const query = { cursor: this.#cursor ?? undefined, types: types?.join(), agentId };
        const input = { params: { env: this.environment }, query };
        const connection = await openEvents(this.#transport, 'streamEnvironment', input, backoff.options);
        backoff.opened();
        const parser = new EventParser();
        let isNew = true;
        for await (const bytes of readBody(connection, this.#transport.sleep)) {
          for (const event of parser.push(bytes)) {
            if (event.event === 'session.chunks') {
              backoff.progress();
              const fresh = this.#fresh(envelopeIn(event));
              if (fresh.chunks.length > 0) yield fresh;
            }
            if (event.id !== undefined) this.#moveTo(event.id);
            // From the first cursor on, nothing is lost.
            if (isNew) onConnection?.('open');
            isNew = false;
          }
        }
        throw connectionError(new Error('the stream ended'));
      } catch (error) {
        if (!this.#options.signal?.aborted) onConnection?.('lost');
        await backoff.pauseAfter(error);
      }
    }
  }

  /** The part of the envelope that was not returned before. */
  #fresh(envelope: Envelope): Envelope {
    const { sessionId, cursor, timestamp } = envelope;
    const before = this.#returned.get(sessionId);
    const chunks = before ? envelope.chunks.filter((chunk) => isAfter(chunk, before.cursor)) : envelope.chunks;
    if (chunks.length > 0) this.#returned.set(sessionId, { cursor, timestamp });
    return chunks.length === envelope.chunks.length ? envelope : { ...envelope, chunks };
  }

  #moveTo(cursor: string): void {
    if (cursor === this.#cursor) return;
    this.#cursor = cursor;
    for (const [sessionId, { timestamp }] of this.#returned) if (timestamp < cursor) this.#returned.delete(sessionId);
  }
}
