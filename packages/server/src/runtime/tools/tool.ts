// Tools as the turn machine knows them, and what it asks of one that the service runs itself.
import type { AgentTool, ApprovalPolicy, ClientTool, Tool } from '@signalbox/contract';
import type { Redacted } from './redact.ts';

/**
 * What runs the calls of a tool: `here` a node, by `RunTool`; `client` the integrator's program, which sends the result;
 * `session` a child session.
 */
export type RunsAs = 'here' | 'client' | 'session';

/** A tool as the model sees it: one of the agent's own, or one that an MCP server of the agent offers. */
export type TurnTool = TurnToolDetails &
  (
    | { readonly runsAs: 'here'; readonly source: Exclude<Tool, ClientTool | AgentTool> }
    | { readonly runsAs: 'client'; readonly source: ClientTool }
    | { readonly runsAs: 'session'; readonly source: AgentTool }
  );

interface TurnToolDetails {
  /** The name that the model calls. `source` is its definition in the agent; of an MCP server's tool, the server's. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Record<string, unknown>;
  /** Never undefined: the default is already applied. */
  readonly approval: ApprovalPolicy;
  /** Whether a call that was cut off may be made again. */
  readonly repeatable: boolean;
  /** The MCP server's own name for it. */
  readonly remoteName?: string;
}

/** Whose tools: the Environment's secrets are theirs to use. */
export interface ToolOwner {
  readonly organizationId: string;
  readonly environment: string;
}

export interface ToolRun extends ToolOwner {
  tool: TurnTool;
  input: unknown;
  /** `op_…`, sent as the `Idempotency-Key` of the call. */
  operationId: string;
  /**
   * Whose calls they are: those of one Session share what an MCP server keeps for its client (a browser, a transaction), and
   * nobody else does. Without it each call is a client of its own.
   */
  sessionId?: string;
}

/** The text that the model gets. */
export type ToolOutcome = { output: unknown; error?: undefined } | ToolFailure;

export interface ToolFailure {
  /** In words that may be shown: it never holds a secret. */
  error: string;
  /** The call was sent and cut off: it may have had its effect. */
  outcomeUnknown?: true;
  output?: undefined;
}

/**
 * Runs a call to its end. Never throws but for the signal's reason when it is aborted: whatever goes wrong is an outcome, which
 * the model is told.
 */
export type RunTool = (run: ToolRun, signal: AbortSignal) => Promise<ToolOutcome>;

/** An MCP server that could not be asked for its tools, by its name in the Agent, and why. */
export interface UnavailableServer {
  readonly name: string;
  readonly reason: Redacted;
}

/** The tools of an Agent now, and the servers that could not say theirs. */
export interface ListedTools {
  tools: TurnTool[];
  unavailable: UnavailableServer[];
}

/** Never throws but for the signal's reason. */
export type ListTools = (owner: ToolOwner, tools: readonly Tool[], signal: AbortSignal) => Promise<ListedTools>;
