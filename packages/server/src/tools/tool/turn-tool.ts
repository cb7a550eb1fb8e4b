// A tool of an agent's definition as a turn knows it, and what its type implies.
import type {
  ApprovalPolicy,
  ApprovalRule,
  Approvers,
  ClientTool,
  HttpTool,
  McpTool,
  Tool,
  ToolApproval,
  WebSearchTool,
} from '@signalbox/contract';
import type { TurnTool } from './tool.ts';

/** The input of an `agent` tool: the first message of the child session. */
const AGENT_INPUT = {
  type: 'object',
  properties: {
    input: { type: 'string', minLength: 1, description: 'What the agent is to do, with all it needs to know.' },
  },
  required: ['input'],
  additionalProperties: false,
};

/** A tool of the agent's own. MCP servers list theirs themselves; the model's provider runs `web_search`. */
export function turnToolOf(tool: Exclude<Tool, McpTool | WebSearchTool>): TurnTool {
  const { name, description } = tool;
  if (tool.type === 'agent') {
    // The child session is opened once. Its own tools request their own approvals.
    return {
      name,
      description,
      inputSchema: AGENT_INPUT,
      ...approvalOf(tool.approval ?? 'never'),
      repeatable: false,
      runsAs: 'session',
      source: tool,
    };
  }
  const effectful = isEffectful(tool);
  const shared = {
    name,
    description,
    inputSchema: tool.inputSchema,
    ...approvalOf(tool.approval ?? (effectful ? 'always' : 'never')),
    repeatable: !effectful || (tool.type === 'http' && tool.idempotent === true),
  };
  return tool.type === 'client'
    ? { ...shared, runsAs: 'client', source: tool }
    : { ...shared, runsAs: 'here', source: tool };
}

/** The policy of a tool, and who may decide its approvals; null: the default. */
export function approvalOf(approval: ToolApproval): { approval: ApprovalPolicy; by: Approvers | null } {
  return isRule(approval) ? { approval: approval.policy, by: approval.by } : { approval, by: null };
}

/** Whether it is for all tools of an MCP server, rather than one for each of them. */
export function isSinglePolicy(approval: NonNullable<McpTool['approval']>): approval is ToolApproval {
  return (
    typeof approval === 'string' ||
    ('when' in approval && typeof approval.when === 'object' && Object.keys(approval).length === 1) ||
    isRule(approval)
  );
}

/** An MCP server may have tools called `policy` and `by`: approvers are neither a policy nor a rule. */
function isRule(approval: NonNullable<McpTool['approval']>): approval is ApprovalRule {
  if (typeof approval === 'string' || !('policy' in approval && 'by' in approval)) return false;
  const { by } = approval;
  const isOfTool = typeof by !== 'object' || 'when' in by || 'policy' in by;
  return Object.keys(approval).length === 2 && !isOfTool;
}

/** Whether a call of the tool changes something outside. */
function isEffectful(tool: HttpTool | ClientTool): boolean {
  return tool.effectful ?? (tool.type === 'http' && tool.request.method !== 'GET');
}

/** Without the tools of these names, and all of an MCP server that is named. */
export function withoutTools(tools: readonly TurnTool[], names: readonly string[]): TurnTool[] {
  const isNamed = (tool: TurnTool) =>
    names.includes(tool.name) || (tool.source.type === 'mcp' && names.includes(tool.source.name));
  return tools.filter((tool) => !isNamed(tool));
}

/** The tools of a definition that are known without a server. */
export function ownTools(tools: readonly Tool[]): TurnTool[] {
  return tools.flatMap((tool) => (tool.type === 'mcp' || tool.type === 'web_search' ? [] : [turnToolOf(tool)]));
}
