// The changes that a response stores: the same for a model's response and a worker's submission.
import type { Agent } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { approvalEvent, requestApproval } from '../approvals/approvals.ts';
import { type EventSource, recordEvent } from '../events/record.ts';
import type { NewChunk } from '../journal/segment.ts';
import type { LeftOutColumn } from '../session-rows/left-out.ts';
import {
  insertOperation,
  isFinished,
  notRunChunks,
  type Operation,
  type PricedUsage,
  updateOperation,
} from '../session-rows/operations.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { insertEntry, type TranscriptEntry } from '../session-rows/transcript.ts';
import type { TurnTool } from '../tools/tool/tool.ts';
import { type ShownRan, toolOf } from '../turn/calls.ts';
import { insertUsage, usagePatch } from '../usage/usage.ts';
import type { Change } from './active-session.ts';

export interface ModelResponse {
  modelCall: Operation;
  calls: readonly Operation[];
  ran: ShownRan;
  /** `provider/model`. */
  model: string;
  usage: PricedUsage;
  /** Its entry in the transcript. */
  entry: TranscriptEntry;
  /** What the call read and wrote; null if nothing is known of it. */
  reportedTokens: number | null;
  /** What models do not get from now on. */
  leftOut: LeftOutColumn;
}

/** Chunks, row changes and statements of a response. Sets when the approvals of its calls expire. */
export function modelResponseChange(
  row: SessionRow,
  { modelCall, calls, ran, model, usage, entry, reportedTokens, leftOut }: ModelResponse,
  { tools, limits, source }: { tools: readonly TurnTool[]; limits: Agent['limits']; source: EventSource },
  now: Date,
): Required<Pick<Change, 'items' | 'patch' | 'statements'>> {
  modelCall.usage = usage;
  const { approvalTimeoutSeconds } = limits;
  const expiresAt = approvalTimeoutSeconds === null ? null : new Date(now.getTime() + approvalTimeoutSeconds * 1000);
  const asked = calls.filter(({ status }) => status === 'awaiting_approval');
  for (const call of asked) call.expiresAt = expiresAt;
  const requests = asked.map((call) => {
    const { inputSchema, approval, by } = toolOf(tools, call)!;
    const { operationId, tool, input } = call;
    const once = approval === 'once';
    return {
      operationId,
      by,
      ...requestApproval(row, { operationId, name: tool!, input, inputSchema, once, by, expiresAt }, now),
    };
  });
  const isMore = leftOut !== row.leftOut;
  row.leftOut = leftOut;
  return {
    items: [
      ...ranItems(ran, tools),
      ...calls.filter(isFinished).flatMap(notRunChunks),
      ...requests.map(({ chunk }) => chunk),
    ],
    patch: [
      ...usagePatch(usage),
      sql`model_calls = model_calls + 1`,
      sql`tool_calls = tool_calls + ${calls.length}`,
      sql`context_tokens = ${reportedTokens}`,
      ...(isMore ? [sql`left_out = ${JSON.stringify(leftOut)}`] : []),
    ],
    statements: [
      updateOperation(row, modelCall, now),
      ...calls.map((call) => insertOperation(row, call, now)),
      insertEntry(row, entry),
      insertUsage(row, { operationId: modelCall.operationId, model, usage }, now),
      ...requests.map(({ statement }) => statement),
      ...requests.map(({ operationId, by }) =>
        recordEvent(source, now, {
          type: 'approval.requested',
          ...approvalEvent({ ...row, operationId }),
          ...(by && { changes: { by: [null, by] } }),
        }),
      ),
    ],
  };
}

/**
 * What the provider ran itself, and what the text cites. `message.reset` does not void calls, so they are written with the response, not
 * while it streams. A program runs a call of its `client` tool as soon as it sees the `tool.call`: a call of this name gets none.
 */
function ranItems({ calls, sources }: ShownRan, tools: readonly TurnTool[]): NewChunk[] {
  const cited: NewChunk[] = sources.length === 0 ? [] : [{ type: 'message.chunk', delta: '', sources: [...sources] }];
  return cited.concat(
    calls.flatMap(({ toolCallId, tool, input, output, error }): NewChunk[] => {
      const asked = { tool, input };
      const result = { type: 'tool.result' as const, toolCallId, ...(error === undefined ? { output } : { error }) };
      const by = 'provider' as const;
      if (tools.some(({ name, runsAs }) => name === tool && runsAs === 'client')) return [{ ...result, ...asked, by }];
      return [
        { type: 'tool.call', toolCallId, ...asked, by },
        { ...result, by },
      ];
    }),
  );
}
