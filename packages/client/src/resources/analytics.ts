import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { Analytics } from '../types.generated.ts';

/** Sessions, turns, errors, latencies, deliveries and cost over time. Permission `read`. */
export class OrganizationAnalytics {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The last 24 hours by the hour, by default. `from` and `to` are extended to whole points; the response says which.
   *
   * @throws BadRequestError if there are no points of that step so long ago, or too many of them
   */
  get(params: Query<'getAnalytics'> = {}, options?: RequestOptions): Promise<Analytics> {
    return this.#transport.call('getAnalytics', { query: params }, options);
  }
}
