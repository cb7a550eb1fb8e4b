// How a tool call starts: its chunk, its row and, for an `agent` tool, the child session, in one transaction.
import type { NewChunk } from '../../journal/segment.ts';
import { startTurn } from '../../sessions/begin-turn.ts';
import { openChild } from '../../sessions/children.ts';
import { announceNewSession } from '../../sessions/new-session.ts';
import { type Operation, resultChunk, toolCallIdOf, updateOperation } from '../../sessions/state/operations.ts';
import type { TurnTool } from '../tools/tool.ts';
import { agentSource, type TurnContext } from './turn-context.ts';

/** Returns whether a child session was opened. */
export async function startCall(context: TurnContext, call: Operation, tool: TurnTool, now: Date): Promise<boolean> {
  const { session, platform, span } = context;
  const { row } = session;
  const from = { ...agentSource(context), traceParent: span?.traceParent };
  const opened = tool.runsAs === 'session' ? await openChild(platform, row, tool.source, call, from) : undefined;
  const child = typeof opened === 'object' ? opened : undefined;
  if (typeof opened === 'string') Object.assign(call, { status: 'failed', error: opened });
  if (child) call.childSessionId = child.row.sessionId;
  const toolCallId = toolCallIdOf(call);
  const shown: NewChunk = { type: 'tool.call', tool: call.tool!, toolCallId, input: call.input };
  await session.commit({
    items: typeof opened === 'string' ? [shown, resultChunk(call)] : [shown],
    statements: [...(child?.statements ?? []), updateOperation(row, call, now)],
  });
  if (!child) return false;
  announceNewSession(platform, child);
  if (child.firstTurn) startTurn(platform, undefined, child.firstTurn);
  return true;
}
