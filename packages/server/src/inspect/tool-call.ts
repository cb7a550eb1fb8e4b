import type { McpTool, SentRequest } from '@signalbox/contract';
import type { Definition } from '../agents/agents.ts';
import { formatId } from '../lib/ids.ts';
import type { Operation } from '../session-rows/operations.ts';
import { type SessionRow, viewEndUser } from '../session-rows/session.ts';
import { httpRequestAsSent, mcpRequestAsSent } from '../tools/as-sent.ts';
import { REMOVED } from '../tools/tool/stored-response.ts';

/** What was sent, or would have been, to the server of the call's tool; null if no node sends anything. */
export function toolCallRequest(
  session: SessionRow,
  { tools }: Definition,
  { tool: name, toolType, input, operationId, status, trace }: Operation,
): { request: SentRequest | null; notes: string[] } {
  if (toolType === 'mock') return { request: null, notes: ['The draft mocks this tool: nothing was sent.'] };
  if ((toolType !== 'http' && toolType !== 'mcp') || name === null) return { request: null, notes: [] };
  const notes: string[] = [];
  if (status === 'denied' || status === 'awaiting_approval' || status === 'ready')
    notes.push('The call did not run: this is what would have been sent.');
  const given = { input, endUser: viewEndUser(session), operationId: formatId('op', operationId) };
  const own = tools.find((tool) => tool.type === 'http' && tool.name === name);
  if (own?.type === 'http') return withReason(httpRequestAsSent(own, given), notes);
  const server = tools
    .filter((tool): tool is McpTool => tool.type === 'mcp' && name.startsWith(`${tool.name}__`))
    .sort((a, b) => b.name.length - a.name.length)[0];
  if (!server) return { request: null, notes: ['The agent no longer has this tool.'] };
  const sent = trace?.response?.sent;
  if (!sent) notes.push('The id of the message and the headers of the MCP protocol are not stored.');
  else if (sent.headers.some(([, value]) => value === REMOVED))
    notes.push('The id of the session with the MCP server is not stored.');
  return withReason(mcpRequestAsSent(server, name.slice(server.name.length + 2), given, sent), notes);
}

function withReason(request: SentRequest | string, notes: string[]): { request: SentRequest | null; notes: string[] } {
  return typeof request === 'string'
    ? { request: null, notes: [...notes, `Nothing was sent: ${request}.`] }
    : { request, notes };
}
