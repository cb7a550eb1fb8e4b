// How a compaction is stored: before it starts, and with its summary, its chunk and what it used when it is over.
import sql from 'sql-template-tag';
import type { Spending } from '../budgets/session-spending.ts';
import { formatId } from '../lib/ids.ts';
import { insertCompaction, untilTurn } from '../session-rows/compactions.ts';
import { insertOperation, type PricedUsage, updateOperation } from '../session-rows/operations.ts';
import type { TurnEvent, TurnState } from '../turn/turn.ts';
import { insertUsage, usagePatch } from '../usage/usage.ts';
import type { Change } from './active-session.ts';
import type { TurnContext } from './turn-context.ts';

type Compacted = Extract<TurnEvent, { type: 'compacted' }>;

export async function storeCompaction(
  context: TurnContext,
  event: Extract<TurnEvent, { type: 'compactionStarted' | 'compactionFailed' | 'compacted' }>,
  spending: Pick<Spending, 'add'>,
): Promise<void> {
  const { session, state, platform } = context;
  const { row, head } = session;
  const { operation } = event;
  const now = platform.clock.now();
  switch (event.type) {
    case 'compactionStarted':
      operation.fromSeq = head.nextSeq;
      return session.commit({ statements: [insertOperation(row, operation, now)] });
    case 'compactionFailed':
      return session.commit({ statements: [updateOperation(row, operation, now)] });
    case 'compacted': {
      const usage = event.written && spending.add(event.written.model, event.written.usage);
      await session.commit(compactionChange(context, state, event, usage, now));
      platform.metrics.compactions.inc();
    }
  }
}

/** `usage`: null if no model wrote it. Sets where the text of the step's model call begins now. */
function compactionChange(
  { session: { row, head } }: TurnContext,
  { operations }: Pick<TurnState, 'operations'>,
  { operation, compaction, tokensBefore, tokensAfter }: Compacted,
  usage: PricedUsage | null,
  now: Date,
): Required<Pick<Change, 'items' | 'patch' | 'statements'>> {
  operation.usage = usage;
  const { operationId, model } = operation;
  const chunk = {
    type: 'context.compacted' as const,
    operationId: formatId('op', operationId),
    untilTurn: untilTurn(compaction),
    tokensBefore,
    tokensAfter,
    summary: compaction.summary,
    model,
    usage,
  };
  const modelCall = operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
  if (modelCall) modelCall.fromSeq = head.nextSeq + 1;
  return {
    items: [chunk],
    patch: [sql`context_tokens = null`, ...(usage ? usagePatch(usage) : [])],
    statements: [
      updateOperation(row, operation, now),
      insertCompaction(row, operation, compaction, { before: tokensBefore, after: tokensAfter }, now),
      ...(modelCall ? [updateOperation(row, modelCall, now)] : []),
      ...(usage ? [insertUsage(row, { operationId, model: model!, usage }, now)] : []),
    ],
  };
}
