import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { ApiKey, ApiKeyWithSecret, CreateKey, RotateKey, UpdateKey } from '../types.generated.ts';

/** API keys; scope `keys:manage` (permission `admin`). */
export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a key, with a `permission` or with `scopes`. Its `secret` is in this response only: store it.
   *
   * @throws BadRequestError `invalid_request` if `expiresAt` is in the past, or `allowedIps` are not addresses
   * @throws NotFoundError if one of `environments` or `agents` does not exist
   * @throws PermissionError if the key could do more than the key that creates it
   */
  async create(params: CreateKey, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return (await this.#transport.call('createKey', { body: params }, options)).apiKey;
  }

  /** Keys that are not deleted, newest first, without their secrets. */
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
   * Changes name, permission or scopes, restrictions or metadata, but not the secret. Not retried after a lost connection.
   *
   * @throws NotFoundError
   * @throws PermissionError if the key can do more than the key that changes it, before or after
   */
  async update(keyId: string, params: UpdateKey, options?: RequestOptions): Promise<ApiKey> {
    return (await this.#transport.call('updateKey', { params: { keyId }, body: params }, options)).apiKey;
  }

  /**
   * Creates a new `secret`, which is in this response only. The old one is refused from now on, on every node, or after
   * `gracePeriodSeconds`. An older one that still works ends now. A client that rotates its own key continues with a new `Signalbox`.
   *
   * @throws NotFoundError
   */
  async rotate(keyId: string, params: RotateKey = {}, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return (await this.#transport.call('rotateKey', { params: { keyId }, body: params }, options)).apiKey;
  }

  /**
   * Ends the grace period of a rotation: the old secret is refused from now on.
   *
   * @throws NotFoundError
   */
  async deleteOldSecret(keyId: string, options?: RequestOptions): Promise<ApiKey> {
    return (await this.#transport.call('deleteOldSecret', { params: { keyId } }, options)).apiKey;
  }

  /**
   * Revokes the key permanently.
   *
   * @throws NotFoundError
   */
  delete(keyId: string, options?: RequestOptions): Promise<Result<'deleteKey'>> {
    return this.#transport.call('deleteKey', { params: { keyId } }, options);
  }
}
