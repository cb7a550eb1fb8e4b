import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { Event } from '../types.generated.ts';

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
  list(params: Query<'listEvents'> = {}, options?: RequestOptions): PageRequest<Event> {
    return new PageRequest(
      (cursor) => this.#transport.call('listEvents', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(eventId: string, options?: RequestOptions): Promise<Event> {
    return (await this.#transport.call('getEvent', { params: { eventId } }, options)).event;
  }
}
