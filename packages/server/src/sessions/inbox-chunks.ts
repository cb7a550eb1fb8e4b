// The chunks that show entries of a session's inbox: decisions on approvals, and results of calls.
import type { NewChunk } from '../journal/segment.ts';
import type { InboxEntry } from '../session-rows/inbox.ts';
import { decidedChunk, notRunChunks, type Operation, resolvedChunk, resultChunk } from '../session-rows/operations.ts';

/** In the order of the entries; messages have no chunks. `operations`: those of the turn. */
export function inboxChunks(entries: readonly InboxEntry[], operations: readonly Operation[]): NewChunk[] {
  return entries.flatMap((entry) => {
    if (entry.kind === 'message') return [];
    const operation = operations.find(({ operationId }) => operationId === entry.operationId);
    if (entry.kind === 'tool_result') return operation ? [resultChunk(operation)] : [];
    if (entry.progress) return [decidedChunk(entry.operationId, entry.progress)];
    const resolved = resolvedChunk(entry.operationId, entry.decision, entry.reason ?? null);
    return operation?.status === 'denied' ? [resolved, ...notRunChunks(operation)] : [resolved];
  });
}
