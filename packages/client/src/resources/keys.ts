import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { ApiKey, ApiKeyWithSecret, CreateKey, UpdateKey } from '../types.generated.ts';

/** API keys; permission `admin` (source section 4.2, api.md section 2). */
export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a key. Its `secret` is in this answer alone: keep it now.
   *
   * @throws BadRequestError `invalid_request` where `expiresAt` is past, or `allowedIps` are no addresses
   * @throws NotFoundError where one of `environments` is not there
   */
  async create(params: CreateKey, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return (await this.#transport.call('createKey', { body: params }, options)).apiKey;
  }

  /** The live keys, newest first, without their secrets. */
  list(params: Query<'listKeys'> = {}, options?: RequestOptions): PageRequest<ApiKey> {
    return new PageRequest(
      (cursor) => this.#transport.call('listKeys', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(keyId: string, options?: RequestOptions): Promise<ApiKey> {
    return (await this.#transport.call('getKey', { params: { keyId } }, options)).apiKey;
  }

  /**
   * Changes name, permission, limits or metadata; the secret stays. Not tried again after a lost connection.
   *
   * @throws NotFoundError
   */
  async update(keyId: string, params: UpdateKey, options?: RequestOptions): Promise<ApiKey> {
    return (await this.#transport.call('updateKey', { params: { keyId }, body: params }, options)).apiKey;
  }

  /**
   * Gives the key a new `secret`, in this answer alone; the old one is refused from then on, everywhere. A client that
   * rotates its own key goes on with a new `Signalbox`.
   *
   * @throws NotFoundError
   */
  async rotate(keyId: string, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return (await this.#transport.call('rotateKey', { params: { keyId } }, options)).apiKey;
  }

  /**
   * Revokes the key for good.
   *
   * @throws NotFoundError
   */
  delete(keyId: string, options?: RequestOptions): Promise<Result<'deleteKey'>> {
    return this.#transport.call('deleteKey', { params: { keyId } }, options);
  }
}
