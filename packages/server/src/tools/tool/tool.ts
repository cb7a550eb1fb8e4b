// Tools as the turn machine sees them, and the function that runs a call on a node.
import type {
  AgentTool,
  ApprovalPolicy,
  Approvers,
  ClientTool,
  EndUser,
  Tool,
  ToolMock,
  WebSearchTool,
} from '@signalbox/contract';
import type { HeldMemory } from '../../lib/memory.ts';
import type { StoredResponse } from '../../session-rows/operation-trace.ts';
import type { Redacted } from './redact.ts';
import type { SaveFile } from './returned-file.ts';

/**
 * What runs the calls of a tool: `here` a node, by `RunTool`; `client` the integrator's program, which sends the result;
 * `session` a child session.
 */
export type RunsAs = 'here' | 'client' | 'session';

/** A tool as the model sees it: one of the agent's own, or one that an MCP server of the agent offers. */
export type TurnTool = TurnToolDetails &
  (
    | { readonly runsAs: 'here'; readonly source: Exclude<Tool, ClientTool | AgentTool | WebSearchTool> | MockSource }
    | { readonly runsAs: 'client'; readonly source: ClientTool }
    | { readonly runsAs: 'session'; readonly source: AgentTool }
  );

/** In place of the tool that a draft mocks, whatever its type. */
export interface MockSource {
  readonly type: 'mock';
  readonly mock: ToolMock;
}

interface TurnToolDetails {
  /** The name that the model calls. `source` is its definition in the agent; of an MCP server's tool, the server's. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Record<string, unknown>;
  /** Never undefined: the default is already applied. */
  readonly approval: ApprovalPolicy;
  /** Who may decide its approvals; null: the default. */
  readonly by: Approvers | null;
  /** Whether an interrupted call may be repeated. */
  readonly repeatable: boolean;
  /** The MCP server's own name for it. */
  readonly remoteName?: string;
}

/** Whose tools they are. They may use the environment's secrets. */
export interface ToolOwner {
  readonly organizationId: string;
  readonly environment: string;
  /** For whom the session is. The service passes it on: neither the model nor the server of a tool can change it. */
  readonly endUser: EndUser | null;
}

export interface ToolRun extends ToolOwner {
  tool: TurnTool;
  input: unknown;
  /** `op_…`, sent as the `Idempotency-Key` of the call. */
  operationId: string;
  /**
   * Calls of one session share what an MCP server keeps for a client (a browser, a transaction); calls of different sessions do
   * not. Without it, each call is a client of its own.
   */
  sessionId?: string;
  /** Stores a file that the call returns. Without it, files are described. */
  saveFile?: SaveFile;
  /** Memory that the caller releases when it has stored the result. Without it, the call's memory is released when it ends. */
  held?: HeldMemory;
  /** Called with the request of an `http` tool before it is sent, and with the response of a tool's server: for people who debug the call. */
  onRequest?: (request: SentRequest) => void;
  onResponse?: (response: StoredResponse) => void;
}

/** Without secrets. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
}

/** The result that the model gets. */
export type ToolOutcome = { output: unknown; error?: undefined } | ToolFailure;

export interface ToolFailure {
  /** May be shown: it never contains a secret. */
  error: string;
  /** The call was sent and interrupted: it may have taken effect. */
  outcomeUnknown?: true;
  output?: undefined;
}

/**
 * Runs a call to its end. Throws only the signal's reason, when it is aborted: every failure is an outcome, and the model gets it.
 */
export type RunTool = (run: ToolRun, signal: AbortSignal) => Promise<ToolOutcome>;

/** An MCP server that could not list its tools, by its name in the agent, and why. */
export interface UnavailableServer {
  readonly name: string;
  readonly reason: Redacted;
}

/** The tools of an agent now, and the servers that could not list theirs. */
export interface ListedTools {
  tools: TurnTool[];
  unavailable: UnavailableServer[];
}

/** Throws only the signal's reason. */
export type ListTools = (owner: ToolOwner, tools: readonly Tool[], signal: AbortSignal) => Promise<ListedTools>;
