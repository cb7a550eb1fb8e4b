import { linesIn, readBody } from '../body-stream.ts';
import { type EventVerification, type VerifyEventsOptions, verifyEvents } from '../event-chain.ts';
import { PageRequest } from '../page.ts';
import { ReconnectBackoff } from '../reconnect-backoff.ts';
import type { Query, RequestOptions, Transport } from '../transport.ts';
import { connectionError } from '../transport.ts';
import type { Event, EventType } from '../types.generated.ts';

/** A type of record, all types of a group as `approval.*`, or all as `*`. */
export type EventTypePattern = EventType | '*' | `${string}.*`;

/** Which records to read; a record must match all filters. */
export type EventFilters = Omit<Query<'exportEvents'>, 'format' | 'type'> & {
  /** One type, or several: `approval.*` stands for a group, `*` for all. Default: all. */
  type?: EventTypePattern | readonly EventTypePattern[] | undefined;
};

type WithTypes<Q> = Omit<Q, 'type'> & Pick<EventFilters, 'type'>;

/** The longest wait that the service allows. */
const waitSeconds = 20;

/** The organization event log: who changed what. Permission `read`. */
export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Records, newest first; with `order: 'asc'`, oldest first. No record ever appears before a cursor that was already
   * returned: a poller that keeps `page.nextCursor` misses nothing.
   */
  list(params: WithTypes<Query<'listEvents'>> = {}, options?: RequestOptions): PageRequest<Event> {
    const query = withTypes(params);
    return new PageRequest(
      (cursor) => this.#transport.call('listEvents', { query: { ...query, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(eventId: string, options?: RequestOptions): Promise<Event> {
    return (await this.#transport.call('getEvent', { params: { eventId } }, options)).event;
  }

  /**
   * New records as they are written, oldest first, without end: from the oldest that is kept, or after `afterSequence`. It
   * reconnects after a lost connection. To resume in another process, keep the `sequence` of the last record you processed.
   * To stop it, leave the loop or abort `options.signal`.
   */
  async *follow(filters: EventFilters = {}, options: RequestOptions = {}): AsyncGenerator<Event, never, undefined> {
    const backoff = new ReconnectBackoff(this.#transport, options);
    let cursor: string | undefined;
    while (true) {
      const query = { ...withTypes(filters), order: 'asc' as const, wait: waitSeconds, cursor };
      const page = await this.#transport.call('listEvents', { query }, backoff.options).catch(async (error) => {
        await backoff.pauseAfter(error);
      });
      if (!page) continue;
      backoff.opened();
      backoff.progress();
      yield* page.data;
      cursor = page.page.nextCursor || undefined;
    }
  }

  /**
   * All records up to the newest, oldest first, as a stream that needs little memory regardless of its length. It resumes
   * after a lost connection, and then includes records written in the meantime.
   */
  async *export(filters: EventFilters = {}, options: RequestOptions = {}): AsyncGenerator<Event, void, undefined> {
    const backoff = new ReconnectBackoff(this.#transport, options);
    let { afterSequence } = filters;
    while (true) {
      try {
        const query = { ...withTypes(filters), afterSequence };
        const accept = 'application/jsonl';
        const connection = await this.#transport.open('exportEvents', { query }, backoff.options, { accept });
        backoff.opened();
        for await (const line of linesIn(readBody(connection, this.#transport.sleep))) {
          const event = recordIn(line);
          backoff.progress();
          afterSequence = event.sequence;
          yield event;
        }
        return;
      } catch (error) {
        await backoff.pauseAfter(error);
      }
    }
  }

  /**
   * The export as a file: JSON lines, or `format: 'csv'`. The stream errors if the connection is cut: the file is then
   * incomplete.
   */
  async download(
    params: WithTypes<Query<'exportEvents'>> = {},
    options: RequestOptions = {},
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const accept = params.format === 'csv' ? 'text/csv' : 'application/jsonl';
    const { response } = await this.#transport.open('exportEvents', { query: withTypes(params) }, options, { accept });
    return response.body as ReadableStream<Uint8Array<ArrayBuffer>>;
  }

  /**
   * Reads the whole log and verifies its chain: nothing changed, nothing missing. `ok: false` names the first record that is
   * wrong. To verify records that you stored yourself, use {@link verifyEvents}.
   */
  verify(params: VerifyEventsOptions = {}, options?: RequestOptions): Promise<EventVerification> {
    return verifyEvents(this.export({}, options), params);
  }
}

function withTypes<Q extends Pick<EventFilters, 'type'>>(query: Q): Omit<Q, 'type'> & { type?: string | undefined } {
  return { ...query, type: query.type === undefined ? undefined : [query.type].flat().join(',') };
}

function recordIn(line: string): Event {
  try {
    return JSON.parse(line) as Event;
  } catch {
    // A proxy cut the response within a line, but ended it as if it were complete.
    throw connectionError(new Error('a line of the export is not JSON'));
  }
}
