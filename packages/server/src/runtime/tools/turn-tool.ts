// A tool of an agent's definition as a turn knows it, and what its type implies.
import type { ApprovalPolicy, ClientTool, HttpTool, McpTool, Tool } from '@signalbox/contract';
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

/** A tool of the agent's own. MCP servers list theirs themselves. */
export function turnToolOf(tool: Exclude<Tool, McpTool>): TurnTool {
  const { name, description } = tool;
  if (tool.type === 'agent') {
    // The child session is opened once. Its own tools request their own approvals.
    return {
      name,
      description,
      inputSchema: AGENT_INPUT,
      approval: tool.approval ?? 'never',
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
    approval: tool.approval ?? (effectful ? 'always' : 'never'),
    repeatable: !effectful || (tool.type === 'http' && tool.idempotent === true),
  };
  return tool.type === 'client'
    ? { ...shared, runsAs: 'client', source: tool }
    : { ...shared, runsAs: 'here', source: tool };
}

/** Whether it is one policy rather than one for each tool of an MCP server. */
export function isPolicy(approval: NonNullable<McpTool['approval']>): approval is ApprovalPolicy {
  return (
    typeof approval === 'string' ||
    ('when' in approval && typeof approval.when === 'object' && Object.keys(approval).length === 1)
  );
}

/** Whether a call of the tool changes something outside. */
function isEffectful(tool: HttpTool | ClientTool): boolean {
  return tool.effectful ?? (tool.type === 'http' && tool.request.method !== 'GET');
}
