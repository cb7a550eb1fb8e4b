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
import type { JournalCommit } from '../wake/hints.ts';
import { comparePositions, endOfJournal, type Position } from './cursor.ts';
import { deliveryMark, subscriptionOf } from './delivery-mark.ts';
import { type Item, type Segment, segmentOf, segmentsAfter } from './segment.ts';
import { endOfSegments, readTails, type Unfolded } from './tail.ts';

/** The position of a session's next chunk, and the epoch with which it is written. */
export interface JournalHead {
  readonly organizationId: string;
  readonly environment: string;
  readonly sessionId: string;
  epoch: number;
  turn: number;
  /** After everything that was written, also text in the tail. */
  nextSeq: number;
  /** If the session may have text in the tail. A transition moves it to segments. */
  unfolded?: Unfolded | undefined;
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

type Announcer = Pick<Platform, 'live' | 'wake' | 'metrics'>;

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
  platform: Announcer,
  tx: Tx,
  head: JournalHead,
  transition: Transition,
): Promise<void> {
  const { statements, done } = planTransition(platform, head, transition);
  await Promise.all(statements.map((statement) => tx.query(statement))).catch(refuseFenced);
  tx.afterCommit(done);
}

/** A session that the caller has locked, or whose epoch it has raised. */
type Taken = JournalHead & { tailNode: string | null; tailFrom: number | null };

/** Moves what the session has in the tail to segments, in the transaction that has locked its row. Changes the row. */
export async function foldTail(platform: Announcer, tx: Tx, row: Taken, now: Date): Promise<void> {
  if (row.tailNode === null) return;
  const head = withTail(row, await readTails(tx, [row]));
  await writeTransition(platform, tx, head, { runs: [], patch: [], now });
  Object.assign(row, { nextSeq: head.nextSeq, tailNode: null, tailFrom: null });
}

/** Moves text of sessions whose epochs were raised by a statement that is committed, each in a transaction of its own. All are of one shard. */
export async function foldTails(
  platform: Announcer & Pick<Platform, 'db' | 'shards'>,
  rows: readonly Taken[],
  now: Date,
): Promise<void> {
  const taken = rows.filter(({ tailNode }) => tailNode !== null);
  if (taken.length === 0) return;
  const texts = await readTails(platform.db, taken);
  await Promise.all(
    taken.map(async (row) => {
      const head = withTail(row, texts);
      await commitTransition(platform, head, { runs: [], patch: [], now });
      Object.assign(row, { nextSeq: head.nextSeq, tailNode: null, tailFrom: null });
    }),
  );
}

function withTail(row: Taken, texts: Map<string, Item[]>): JournalHead {
  const { organizationId, environment, sessionId, epoch, turn, nextSeq } = row;
  const items = texts.get(sessionId) ?? [];
  // Readers of this node may have seen none of it.
  const unfolded = { items, hidden: items.length };
  return { organizationId, environment, sessionId, epoch, turn, nextSeq: nextSeq + items.length, unfolded };
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
  platform: Announcer,
  head: JournalHead,
  { runs, patch, isText = false, conditions = [], statements = [], now }: Transition,
): { statements: Sql[]; done: () => void } {
  const { unfolded } = head;
  const stored = endOfSegments(head);
  const segments: Segment[] = [];
  let [turn, nextSeq] = [head.turn, stored];
  for (const run of withUnfolded(head, runs)) {
    if (run.items.length === 0) continue;
    if (run.turn !== turn) [turn, nextSeq] = [run.turn, 1];
    segments.push(segmentOf(turn, nextSeq, run.items, now));
    nextSeq += run.items.length;
  }
  const set = [...patch, sql`turn = ${turn}`, sql`next_seq = ${nextSeq}`, sql`updated_at = ${now}`];
  if (unfolded) set.push(sql`tail_node = null`, sql`tail_from = null`);
  const isAppend = segments.length > 0;
  if (isAppend) set.push(deliveryMark());

  // Nothing may be committed if the row did not match. All statements are sent together, before a row count could be checked.
  // The statement itself therefore fails then, and the following statements do not run.
  const update = requireRow(sql`
    update sessions s set ${join(set)}
    ${isAppend ? sql`from (${subscriptionOf(head.organizationId, head.environment)}) d` : empty}
    where s.organization_id = ${head.organizationId} and s.session_id = ${head.sessionId}
      and s.epoch = ${head.epoch} and s.turn = ${head.turn} and s.next_seq = ${stored}
      ${unfolded ? empty : sql`and s.tail_node is null`}
      ${join([sql``, ...conditions], ' and ')}
    returning s.session_id`);

  const previous = endOfJournal({ turn: head.turn, nextSeq: stored });
  const shown = endOfJournal({ turn: head.turn, nextSeq: head.nextSeq - (unfolded?.hidden ?? 0) });
  return {
    statements: [update, ...segments.map((segment) => insertSegment(head, segment)), ...statements],
    done() {
      head.turn = turn;
      head.nextSeq = nextSeq;
      head.unfolded = undefined;
      announceCommit(platform, { path: 'transition', isText }, head, { previous, segments }, shown);
    },
  };
}

/** The text in the tail comes first, in the same segment as what follows it in its turn. */
function withUnfolded({ turn, unfolded }: JournalHead, runs: readonly ChunkRun[]): readonly ChunkRun[] {
  if (!unfolded || unfolded.items.length === 0) return runs;
  const [first, ...others] = runs;
  if (first?.turn !== turn) return [{ turn, items: unfolded.items }, ...runs];
  return [{ turn, items: [...unfolded.items, ...first.items] }, ...others];
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

type Owner = Pick<JournalHead, 'organizationId' | 'environment' | 'sessionId'>;

/**
 * Shows committed segments to readers: those of this node receive them, other nodes a hint. Every append ends here, after its
 * commit. `isText`: they are a part of a response under way. `shown`: what is up to it was shown before, when it was in the tail.
 */
export function announceCommit(
  platform: Announcer,
  how: { path: 'transition' | 'text'; isText: boolean },
  owner: Owner,
  commit: JournalCommit,
  shown: Position = commit.previous,
): void {
  const { previous, segments } = commit;
  if (segments.length === 0) return;
  const isNew = comparePositions(shown, previous) <= 0;
  show(platform, how.path, owner, isNew ? previous : shown, isNew ? segments : segmentsAfter(segments, shown));
  const { organizationId, environment, sessionId } = owner;
  platform.wake.publish('journal', { organizationId, environment, sessionId, isText: how.isText, commit });
}

/** Shows text that was committed to the tail. Webhooks do not deliver it before it is in a segment. */
export function announceText(platform: Announcer, owner: Owner, previous: Position, segment: Segment): void {
  show(platform, 'text', owner, previous, [segment]);
  const { organizationId, environment, sessionId } = owner;
  platform.wake.publish('journal', { organizationId, environment, sessionId, isText: true });
}

function show(
  { live, metrics }: Announcer,
  path: 'transition' | 'text',
  { sessionId }: Owner,
  previous: Position,
  segments: readonly Segment[],
): void {
  if (segments.length === 0) return;
  for (const { seqFrom, seqTo } of segments) metrics.appendChunks.inc({ path }, seqTo - seqFrom + 1);
  live.committed(sessionId, previous, segments);
}
