import type { RequestOptions, Transport } from '../transport.ts';
import type { Organization, UpdateOrganization } from '../types.generated.ts';

/** The organization that calls are made for. */
export class OwnOrganization {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Renames it; role `admin`, and only for a person who is signed in. Not tried again after a lost connection. */
  async update(params: UpdateOrganization, options?: RequestOptions): Promise<Organization> {
    return (await this.#transport.call('updateOrganization', { body: params }, options)).organization;
  }
}
