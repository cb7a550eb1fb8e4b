import { linesIn, pieces } from '../body-stream.ts';
import { type EventVerification, type VerifyEventsOptions, verifyEvents } from '../event-chain.ts';
import { PageRequest } from '../page.ts';
import { Patience } from '../reconnect-backoff.ts';
import type { Query, RequestOptions, Transport } from '../transport.ts';
import { connectionError } from '../transport.ts';
import type { Event, EventType } from '../types.generated.ts';

/** What to leave out; a record must match all of it. */
export type EventFilters = Omit<Query<'exportEvents'>, 'format' | 'type'> & {
  /** One type, or several. Default: all. */
  type?: EventType | readonly EventType[] | undefined;
};

type WithTypes<Q> = Omit<Q, 'type'> & Pick<EventFilters, 'type'>;

/** As long as the service lets a call wait. */
const waitSeconds = 20;

/** The organization event log: who changed what; permission `read` (source section 4.4, api.md section 8). */
export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Records, newest first, or with `order: 'asc'` oldest first. Nothing ever appears behind a cursor already handed
   * out: a poller that keeps `page.nextCursor` misses nothing.
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
   * Records as they are written, oldest first, without end: from the first that is kept, or behind `afterSequence`. It goes
   * on after a lost connection; keep the `sequence` of the last record that you have dealt with to go on in another process.
   * Stop it by leaving the loop, or by `options.signal`.
   */
  async *follow(filters: EventFilters = {}, options: RequestOptions = {}): AsyncGenerator<Event, never, undefined> {
    const patience = new Patience(this.#transport, options);
    let cursor: string | undefined;
    while (true) {
      const query = { ...withTypes(filters), order: 'asc' as const, wait: waitSeconds, cursor };
      const page = await this.#transport.call('listEvents', { query }, patience.options).catch(async (error) => {
        await patience.pauseAfter(error);
      });
      if (!page) continue;
      patience.begin();
      patience.progress();
      yield* page.data;
      cursor = page.page.nextCursor || undefined;
    }
  }

  /**
   * All records up to the newest, oldest first, as one stream that needs little memory however long it is. It goes on after
   * a lost connection; records written meanwhile are then in it too.
   */
  async *export(filters: EventFilters = {}, options: RequestOptions = {}): AsyncGenerator<Event, void, undefined> {
    const patience = new Patience(this.#transport, options);
    let { afterSequence } = filters;
    while (true) {
      try {
        const query = { ...withTypes(filters), afterSequence };
        const accept = 'application/jsonl';
        const connection = await this.#transport.open('exportEvents', { query }, patience.options, { accept });
        patience.begin();
        for await (const line of linesIn(pieces(connection, this.#transport.sleep))) {
          const event = recordIn(line);
          patience.progress();
          afterSequence = event.sequence;
          yield event;
        }
        return;
      } catch (error) {
        await patience.pauseAfter(error);
      }
    }
  }

  /**
   * The export as a file: JSON lines, or `format: 'csv'`. The stream errors where the connection breaks off: what came is
   * then not the whole.
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
   * Reads the whole log and checks its chain: nothing changed, nothing missing. `ok: false` names the first record that is
   * wrong. Records that you have kept yourself: {@link verifyEvents}.
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
    // Cut off within a line, by something between that hides it.
    throw connectionError(new Error('a line of the export is no JSON'));
  }
}
