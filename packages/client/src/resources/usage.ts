import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { UsageReport } from '../types.generated.ts';

/** What the organization used: tokens, model calls and their cost; permission `read`. */
export class OrganizationUsage {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The last 30 days, by day, unless told otherwise. `from` and `to` are taken to whole days of UTC; the report says which.
   *
   * @throws BadRequestError where `from` is not before `to`, or more than 366 days before it
   */
  get(params: Query<'getUsage'> = {}, options?: RequestOptions): Promise<UsageReport> {
    return this.#transport.call('getUsage', { query: params }, options);
  }
}
