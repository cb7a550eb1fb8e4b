import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  Agent,
  CreateAgent,
  ListMcpTools,
  McpToolList,
  ModelList,
  TestTool,
  ToolTest,
  UpdateAgent,
} from '../types.generated.ts';

/** Agents, in immutable versions. Reading needs `read`, changing `write`. */
export class Agents {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** @throws UnprocessableError `url_not_allowed` if the operator forbids an address of a tool or model */
  async create(params: CreateAgent, options?: RequestOptions): Promise<Agent> {
    return (await this.#transport.call('createAgent', { body: params }, options)).agent;
  }

  /** Active agents in their latest versions, newest first; with `archived: true`, archived ones. `q` and `model` find some of them. */
  list(params: Query<'listAgents'> = {}, options?: RequestOptions): PageRequest<Agent> {
    return new PageRequest(
      (cursor) => this.#transport.call('listAgents', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * The latest version of an agent.
   *
   * @throws NotFoundError
   */
  async get(agentId: string, options?: RequestOptions): Promise<Agent> {
    return (await this.#transport.call('getAgent', { params: { agentId } }, options)).agent;
  }

  /** All versions of an agent, newest first. */
  versions(agentId: string, params: Query<'listAgentVersions'> = {}, options?: RequestOptions): PageRequest<Agent> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listAgentVersions', { params: { agentId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Creates a new version; sessions use it from their next turn. With `expectedVersion`, only if that is still the latest
   * version. Not retried after a lost connection.
   *
   * @throws ConflictError `agent_archived`, `conflict`
   * @throws UnprocessableError `url_not_allowed`
   */
  async update(agentId: string, params: UpdateAgent, options?: RequestOptions): Promise<Agent> {
    return (await this.#transport.call('updateAgent', { params: { agentId }, body: params }, options)).agent;
  }

  /**
   * The models of a provider, as its own list says, with what is known about each. `problem` says why a list can't be read.
   *
   * @throws UnprocessableError `url_not_allowed`
   */
  async models(env: string, params: Query<'listModels'>, options?: RequestOptions): Promise<ModelList> {
    return (await this.#transport.call('listModels', { params: { env }, query: params }, options)).modelList;
  }

  /**
   * Sends the request of an `http` tool once, with secrets of the environment and without an approval. Not retried after a lost
   * connection.
   *
   * @throws UnprocessableError `url_not_allowed`
   */
  async testTool(env: string, params: TestTool, options?: RequestOptions): Promise<ToolTest> {
    return (await this.#transport.call('testTool', { params: { env }, body: params }, options)).toolTest;
  }

  /**
   * The tools of an MCP server. `problem` says why they can't be listed.
   *
   * @throws UnprocessableError `url_not_allowed`
   */
  async mcpTools(env: string, params: ListMcpTools, options?: RequestOptions): Promise<McpToolList> {
    return (await this.#transport.call('listMcpTools', { params: { env }, body: params }, options)).mcpToolList;
  }

  /** Archives the agent: current turns finish, new sessions and messages are refused. It can still be read. */
  archive(agentId: string, options?: RequestOptions): Promise<Result<'archiveAgent'>> {
    return this.#transport.call('archiveAgent', { params: { agentId } }, options);
  }
}
