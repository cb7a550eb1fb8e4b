import { EnvironmentStream, type EnvironmentStreamParams } from '../environment-stream.ts';
import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  CreateEnvironment,
  Environment,
  EnvironmentSecret,
  SetSecret,
  UpdateEnvironment,
} from '../types.generated.ts';

/** Environments. Listing needs `read`, creating and deleting `write`, updating `admin`. */
export class Environments {
  /** Secrets for the tools and models of an environment's sessions; permission `admin`. */
  readonly secrets: EnvironmentSecrets;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.secrets = new EnvironmentSecrets(transport);
  }

  /** All environments, newest first; `production` and `staging` exist from the start. */
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
   * Changes how many days ended sessions are kept; `null`: the limit of the operator. Permission `admin`.
   *
   * @throws NotFoundError
   */
  async update(env: string, params: UpdateEnvironment, options?: RequestOptions): Promise<Environment> {
    return (await this.#transport.call('updateEnvironment', { params: { env }, body: params }, options)).environment;
  }

  /**
   * Follows all sessions of an environment: what a webhook subscription would deliver, for a program without a public address. Reconnects
   * and resumes without a gap or a duplicate until `options.signal` is aborted or the key loses access. A program that starts again
   * passes the `cursor` that it stored.
   *
   *     for await (const { sessionId, chunks } of client.environments.stream('staging')) …
   *
   * @throws NotFoundError when iterated
   */
  stream(env: string, params: EnvironmentStreamParams = {}, options: RequestOptions = {}): EnvironmentStream {
    return new EnvironmentStream(this.#transport, env, params, options);
  }

  /** @throws ConflictError `conflict` if it has open sessions, a webhook subscription or schedules */
  delete(env: string, options?: RequestOptions): Promise<Result<'deleteEnvironment'>> {
    return this.#transport.call('deleteEnvironment', { params: { env } }, options);
  }
}

/** Secrets of an environment; their values can't be read. Permission `admin`. */
export class EnvironmentSecrets {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The secrets by name, with their hosts and versions, without their values. */
  list(env: string, params: Query<'listSecrets'> = {}, options?: RequestOptions): PageRequest<EnvironmentSecret> {
    return new PageRequest(
      (cursor) => this.#transport.call('listSecrets', { params: { env }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Creates a secret, and never replaces one: its value and the only hosts that it can be sent to.
   *
   * @throws ConflictError `precondition_failed` if there is a secret of this name
   */
  async create(env: string, name: string, params: SetSecret, options?: RequestOptions): Promise<EnvironmentSecret> {
    const input = { params: { env, name }, body: params, onlyCreate: true } as const;
    return (await this.#transport.call('setSecret', input, options)).secret;
  }

  /** Creates or replaces a secret: its value and the only hosts that it can be sent to. */
  async set(env: string, name: string, params: SetSecret, options?: RequestOptions): Promise<EnvironmentSecret> {
    return (await this.#transport.call('setSecret', { params: { env, name }, body: params }, options)).secret;
  }

  /** @throws NotFoundError */
  delete(env: string, name: string, options?: RequestOptions): Promise<Result<'deleteSecret'>> {
    return this.#transport.call('deleteSecret', { params: { env, name } }, options);
  }
}
