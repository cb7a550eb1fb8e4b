// Compactions: summaries that replace the older messages of a session for its model. The messages stay in the transcript.
//
// A model gets the pinned messages, the summary, and the messages from `from` on. Pinned are the first user message of the session
// and, if `from` is within a turn, the message that began that turn. A fork gets a copy of the newest compaction of its origin that
// replaces nothing else than what the fork has (inherited.ts).
import sql, { type Sql } from 'sql-template-tag';
import type { Operation } from './operations.ts';

/** The place of a message in the transcript. */
export interface Place {
  readonly turn: number;
  readonly position: number;
}

/** The newest summary of a session. */
export interface Compaction {
  /** The first message that it does not replace. */
  readonly from: Place;
  /** Empty: no model wrote one. */
  readonly summary: string;
  /** What `maxTokensOf`, a `provider/model`, may get, because it refused more; null: as much as its agent allows. */
  readonly maxTokens: number | null;
  readonly maxTokensOf: string | null;
}

export function insertCompaction(
  owner: { organizationId: string; sessionId: string; turn: number },
  { operationId, model }: Operation,
  { from, summary, maxTokens, maxTokensOf }: Compaction,
  tokens: { before: number; after: number },
  now: Date,
): Sql {
  return sql`
    insert into compactions (organization_id, session_id, from_turn, from_position, operation_id, turn, summary,
      tokens_before, tokens_after, model, max_tokens, max_tokens_of, created_at)
    values (${owner.organizationId}, ${owner.sessionId}, ${from.turn}, ${from.position}, ${operationId}, ${owner.turn},
      ${summary}, ${tokens.before}, ${tokens.after}, ${model}, ${maxTokens}, ${maxTokensOf}, ${now})`;
}

/** The turn of the last message that the summary replaces. */
export function untilTurn({ from }: Pick<Compaction, 'from'>): number {
  return from.position > 0 ? from.turn : from.turn - 1;
}

/** The messages before `from` that stay, and those from it on. */
export function splitPinned<E extends Place>(entries: readonly E[], from: Place): { pinned: E[]; rest: E[] } {
  const isBefore = (entry: Place) =>
    entry.turn < from.turn || (entry.turn === from.turn && entry.position < from.position);
  return {
    pinned: entries.filter((entry) => isBefore(entry) && (isFirst(entry) || isBeginningOf(entry, from.turn))),
    rest: entries.filter((entry) => !isBefore(entry)),
  };
}

/** The message with which the session began. */
export function isFirst({ turn, position }: Place): boolean {
  return turn === 1 && position === 0;
}

/** The message with which the turn began. */
export function isBeginningOf(entry: Place, turn: number): boolean {
  return entry.turn === turn && entry.position === 0;
}

/** What the model gets in place of the messages. */
export function summaryText(summary: string): string {
  const left = 'Earlier messages of this conversation are left out here, because it is long.';
  return summary === '' ? left : `${left} This is their summary:\n\n${summary}`;
}
