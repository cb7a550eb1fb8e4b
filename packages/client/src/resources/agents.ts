import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { Agent, CreateAgent, UpdateAgent } from '../types.generated.ts';

/** Agents, in immutable versions; list and read `read`, change `write` (source section 4.1, api.md section 3). */
export class Agents {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** @throws UnprocessableError `url_not_allowed` where a tool or model names an address that the operator forbids */
  async create(params: CreateAgent, options?: RequestOptions): Promise<Agent> {
    return (await this.#transport.call('createAgent', { body: params }, options)).agent;
  }

  /** The live Agents in their newest versions, newest first; with `archived: true` the archived ones. */
  list(params: Query<'listAgents'> = {}, options?: RequestOptions): PageRequest<Agent> {
    return new PageRequest(
      (cursor) => this.#transport.call('listAgents', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * The Agent in its newest version.
   *
   * @throws NotFoundError
   */
  async get(agentId: string, options?: RequestOptions): Promise<Agent> {
    return (await this.#transport.call('getAgent', { params: { agentId } }, options)).agent;
  }

  /** Every version of the Agent, newest first. */
  versions(agentId: string, params: Query<'listAgentVersions'> = {}, options?: RequestOptions): PageRequest<Agent> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listAgentVersions', { params: { agentId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Changes the Agent by making a new version; Sessions take it up with their next turn. With `expectedVersion`, only where
   * that is still the newest. Not tried again after a lost connection.
   *
   * @throws ConflictError `agent_archived`, `conflict`
   * @throws UnprocessableError `url_not_allowed`
   */
  async update(agentId: string, params: UpdateAgent, options?: RequestOptions): Promise<Agent> {
    return (await this.#transport.call('updateAgent', { params: { agentId }, body: params }, options)).agent;
  }

  /** Archives the Agent: a turn under way ends as usual, new Sessions and messages are refused. */
  archive(agentId: string, options?: RequestOptions): Promise<Result<'archiveAgent'>> {
    return this.#transport.call('archiveAgent', { params: { agentId } }, options);
  }
}
