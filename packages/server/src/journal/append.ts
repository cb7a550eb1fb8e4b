// The only writer of the journal. Two ways in:
//
// - A transition (`writeTransition`) is part of a transaction: status, approvals, tool calls, the end of a turn.
// - Text deltas take the fast path (appender.ts): those of all sessions of the node are batched and written together.
//
// Both are conditional on the session's epoch, so a writer that lost the session can't write, and on the expected seq, so a retry
// after a lost acknowledgement can't write twice. Both show chunks to readers only after the commit (`announceCommit`).
import sql, { empty, join, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { foundNoRow, requireRow } from '../db/planned-change.ts';
import type { Platform } from '../platform.ts';
import { endOfJournal, type Position } from './cursor.ts';
import { deliveryMark, subscriptionOf } from './delivery-mark.ts';
import { encodeItems, type Item, type Segment } from './segment.ts';

/** The position of a session's next chunk, and the epoch with which it is written. */
export interface JournalHead {
  readonly organizationId: string;
  readonly environment: string;
  readonly sessionId: string;
  epoch: number;
  turn: number;
  nextSeq: number;
}

/** This writer lost the session: it has another writer, or was cancelled. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
  constructor() {
    super('The session has another writer now');
  }
}

/** Chunks for one turn; a transition may end one turn and begin the next. */
export interface ChunkRun {
  turn: number;
  items: readonly Item[];
}

/** Columns of the session row to set, as `column = expression`. */
export type Patch = readonly Sql[];

/** What a transition appends and changes. */
export interface Transition {
  runs: readonly ChunkRun[];
  patch: Patch;
  /** They are a part of a response under way. */
  isText?: boolean;
  /** What more must be true of the row. */
  conditions?: readonly Sql[];
  statements?: readonly Sql[];
  now: Date;
}

/**
 * Appends chunks and changes the session row, in the caller's transaction. Advances `head` after the commit. Throws `Fenced`,
 * and the transaction is rolled back, if the row differs from the head or a condition fails.
 */
export async function writeTransition(
  platform: Pick<Platform, 'live' | 'wake' | 'metrics'>,
  tx: Tx,
  head: JournalHead,
  transition: Transition,
): Promise<void> {
  const { statements, done } = planTransition(platform, head, transition);
  await Promise.all(statements.map((statement) => tx.query(statement))).catch(refuseFenced);
  tx.afterCommit(done);
}

/** Appends in a transaction of its own, which costs one round trip. */
export async function commitTransition(
  platform: Pick<Platform, 'db' | 'shards' | 'live' | 'wake' | 'metrics'>,
  head: JournalHead,
  transition: Transition,
): Promise<void> {
  const { statements, done } = planTransition(platform, head, transition);
  const took = platform.metrics.appendSeconds.startTimer({ path: 'transition' });
  await platform.db.batch(statements, { group: platform.shards.of(head.organizationId) }).catch(refuseFenced);
  took();
  done();
}

function planTransition(
  platform: Pick<Platform, 'live' | 'wake' | 'metrics'>,
  head: JournalHead,
  { runs, patch, isText = false, conditions = [], statements = [], now }: Transition,
): { statements: Sql[]; done: () => void } {
  const segments: Segment[] = [];
  let { turn, nextSeq } = head;
  for (const run of runs) {
    if (run.items.length === 0) continue;
    if (run.turn !== turn) [turn, nextSeq] = [run.turn, 1];
    const seqTo = nextSeq + run.items.length - 1;
    segments.push({ turn, seqFrom: nextSeq, seqTo, body: encodeItems(run.items), createdAt: now });
    nextSeq = seqTo + 1;
  }
  const set = [...patch, sql`turn = ${turn}`, sql`next_seq = ${nextSeq}`, sql`updated_at = ${now}`];
  const isAppend = segments.length > 0;
  if (isAppend) set.push(deliveryMark());

  // Nothing may be committed if the row did not match. All statements are sent together, before a row count could be checked.
  // The statement itself therefore fails then, and the following statements do not run.
  const update = requireRow(sql`
    update sessions s set ${join(set)}
    ${isAppend ? sql`from (${subscriptionOf(head.organizationId, head.environment)}) d` : empty}
    where s.organization_id = ${head.organizationId} and s.session_id = ${head.sessionId}
      and s.epoch = ${head.epoch} and s.turn = ${head.turn} and s.next_seq = ${head.nextSeq}
      ${join([sql``, ...conditions], ' and ')}
    returning s.session_id`);

  const previous = endOfJournal(head);
  return {
    statements: [update, ...segments.map((segment) => insertSegment(head, segment)), ...statements],
    done() {
      head.turn = turn;
      head.nextSeq = nextSeq;
      announceCommit(platform, { path: 'transition', isText }, head, previous, segments);
    },
  };
}

function refuseFenced(error: unknown): never {
  throw foundNoRow(error) ? new Fenced() : error;
}

/** Inserts a segment, without changing the session row. */
export function insertSegment(owner: { organizationId: string; sessionId: string }, segment: Segment): Sql {
  return sql`
    insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
    values (${owner.organizationId}, ${owner.sessionId}, ${segment.turn}, ${segment.seqTo}, ${segment.seqFrom},
      ${segment.body}, ${segment.createdAt})`;
}

/**
 * Shows committed segments to readers: those of this node receive them, other nodes a hint. Every append ends here, after its
 * commit. `isText`: they are a part of a response under way. `previous` is where the journal ended before.
 */
export function announceCommit(
  { live, wake, metrics }: Pick<Platform, 'live' | 'wake' | 'metrics'>,
  { path, isText }: { path: 'transition' | 'text'; isText: boolean },
  owner: Pick<JournalHead, 'organizationId' | 'environment' | 'sessionId'>,
  previous: Position,
  segments: readonly Segment[],
): void {
  if (segments.length === 0) return;
  for (const { seqFrom, seqTo } of segments) metrics.appendChunks.inc({ path }, seqTo - seqFrom + 1);
  const { organizationId, environment, sessionId } = owner;
  live.committed(sessionId, previous, segments);
  wake.publish('journal', { organizationId, environment, sessionId, isText, commit: { previous, segments } });
}
