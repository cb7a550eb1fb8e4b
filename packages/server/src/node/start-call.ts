// How a tool call starts, with its chunk, its row and, for an `agent` tool, the child session, in one transaction; and how it ends.
import type { NewChunk } from '../journal/segment.ts';
import {
  mockMark,
  notRunChunks,
  type Operation,
  resultChunk,
  toolCallIdOf,
  updateOperation,
} from '../session-rows/operations.ts';
import { startTurn } from '../sessions/begin-turn.ts';
import { openChild } from '../sessions/children.ts';
import { announceNewSession } from '../sessions/new-session.ts';
import type { TurnTool } from '../tools/tool/tool.ts';
import { outcomeUnknown } from '../turn/stop-turn.ts';
import type { TurnEvent } from '../turn/turn.ts';
import { releaseResult } from './held-results.ts';
import { createdFileChunks } from './save-files.ts';
import { agentEvent, agentSource, type TurnContext } from './turn-context.ts';

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
  const shown: NewChunk = { type: 'tool.call', tool: call.tool!, toolCallId, input: call.input, ...mockMark(call) };
  await session.commit({
    items: typeof opened === 'string' ? [shown, resultChunk(call)] : [shown],
    statements: [...(child?.statements ?? []), updateOperation(row, call, now)],
  });
  if (!child) return false;
  announceNewSession(platform, child);
  if (child.firstTurn) startTurn(platform, undefined, child.firstTurn);
  return true;
}

/** Stores a call that has ended, that did not run, or that is offered to workers again. */
export async function storeCall(
  context: TurnContext,
  { type, call }: Extract<TurnEvent, { type: 'callRefused' | 'callReturned' | 'callEnded' }>,
): Promise<void> {
  const { session, platform } = context;
  const { row } = session;
  const ended = () => [...createdFileChunks(context, call), resultChunk(call)];
  const items = type === 'callRefused' ? notRunChunks(call) : type === 'callEnded' ? ended() : [];
  const isUnknown = type === 'callEnded' && call.status === 'unknown';
  const unknown = isUnknown ? [agentEvent(context, outcomeUnknown(row, call))] : [];
  await session.commit({ items, statements: [updateOperation(row, call, platform.clock.now()), ...unknown] });
  releaseResult(context, call);
}
