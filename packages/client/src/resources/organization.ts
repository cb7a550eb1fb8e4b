import type { RequestOptions, Transport } from '../transport.ts';
import type { Organization, UpdateOrganization } from '../types.generated.ts';

/** The organization of the caller. */
export class OwnOrganization {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Renames it. Role `admin`, only for a signed-in user. Not retried after a lost connection. */
  async update(params: UpdateOrganization, options?: RequestOptions): Promise<Organization> {
    return (await this.#transport.call('updateOrganization', { body: params }, options)).organization;
  }
}
