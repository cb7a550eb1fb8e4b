import type { RequestOptions, Transport } from '../transport.ts';
import type { Organization, SetOrganization, UpdateOrganization } from '../types.generated.ts';

/** The organization of the caller. */
export class OwnOrganization {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async get(options?: RequestOptions): Promise<Organization> {
    return (await this.#transport.call('getOrganization', {}, options)).organization;
  }

  /** Replaces the list of web pages that session tokens can be used from. Permission `admin`. */
  async set(params: SetOrganization, options?: RequestOptions): Promise<Organization> {
    return (await this.#transport.call('setOrganization', { body: params }, options)).organization;
  }

  /** Renames it. Role `admin`, only for a signed-in user. Not retried after a lost connection. */
  async update(params: UpdateOrganization, options?: RequestOptions): Promise<Organization> {
    return (await this.#transport.call('updateOrganization', { body: params }, options)).organization;
  }
}
