import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { UsageReport } from '../types.generated.ts';

/** The usage of the organization: tokens, model calls and their cost. Permission `read`. */
export class OrganizationUsage {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Usage of the last 30 days, by day, by default. `from` and `to` are extended to whole UTC days; the report says which.
   *
   * @throws BadRequestError if `from` is not before `to`, or more than 366 days before it
   */
  get(params: Query<'getUsage'> = {}, options?: RequestOptions): Promise<UsageReport> {
    return this.#transport.call('getUsage', { query: params }, options);
  }
}
