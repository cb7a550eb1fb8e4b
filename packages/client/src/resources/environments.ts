import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  CreateEnvironment,
  Environment,
  EnvironmentSecret,
  SetSecret,
  UpdateEnvironment,
} from '../types.generated.ts';

/** Environments; list `read`, change `write` (api.md section 4). */
export class Environments {
  /** What the tools of an Environment's Sessions may use; permission `admin`. */
  readonly secrets: EnvironmentSecrets;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.secrets = new EnvironmentSecrets(transport);
  }

  /** All Environments, newest first; `production` and `staging` exist from the start. */
  list(params: Query<'listEnvironments'> = {}, options?: RequestOptions): PageRequest<Environment> {
    return new PageRequest(
      (cursor) => this.#transport.call('listEnvironments', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws ConflictError `environment_exists` */
  async create(params: CreateEnvironment, options?: RequestOptions): Promise<Environment> {
    return (await this.#transport.call('createEnvironment', { body: params }, options)).environment;
  }

  /**
   * Changes how long its sessions are kept after they ended; `null` leaves it to the operator. Permission `admin`.
   *
   * @throws NotFoundError
   */
  async update(env: string, params: UpdateEnvironment, options?: RequestOptions): Promise<Environment> {
    return (await this.#transport.call('updateEnvironment', { params: { env }, body: params }, options)).environment;
  }

  /** @throws ConflictError `conflict` while it has open Sessions or a webhook subscription */
  delete(env: string, options?: RequestOptions): Promise<Result<'deleteEnvironment'>> {
    return this.#transport.call('deleteEnvironment', { params: { env } }, options);
  }
}

/** Secrets of an Environment: set, never read back; permission `admin` (api.md section 4). */
export class EnvironmentSecrets {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The secrets by name: their hosts and versions, never their values. */
  list(env: string, params: Query<'listSecrets'> = {}, options?: RequestOptions): PageRequest<EnvironmentSecret> {
    return new PageRequest(
      (cursor) => this.#transport.call('listSecrets', { params: { env }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** Sets the secret's value and the only hosts that requests with it may go to, in place of what was set before. */
  async set(env: string, name: string, params: SetSecret, options?: RequestOptions): Promise<EnvironmentSecret> {
    return (await this.#transport.call('setSecret', { params: { env, name }, body: params }, options)).secret;
  }

  /** @throws NotFoundError */
  delete(env: string, name: string, options?: RequestOptions): Promise<Result<'deleteSecret'>> {
    return this.#transport.call('deleteSecret', { params: { env, name } }, options);
  }
}
