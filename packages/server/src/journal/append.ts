// The only writer of the journal. Two ways in:
//
// - A transition (`writeTransition`) is part of a transaction: status, approvals, tool calls, the end of a turn.
// - Deltas of text take the fast path (`createAppender`): those of all Sessions of the node are gathered and written by one
//   statement for a group of organizations.
//
// Both are conditional on the Session's epoch (a writer that lost the Session can't write) and on the expected seq (a write
// repeated after a lost acknowledgement can't be written twice), and both give chunks to readers only after the commit.
import sql, { join, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import type { Platform } from '../platform.ts';
import type { Position } from './cursor.ts';
import { encodeItems, type Item, type Segment } from './segment.ts';

/** Where the next chunk of a Session goes, and by whose right. */
export interface JournalHead {
  readonly organizationId: string;
  readonly sessionId: string;
  epoch: number;
  turn: number;
  nextSeq: number;
}

/** This writer lost the Session: another one has it, or it was cancelled. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
  constructor() {
    super('The session has another writer now');
  }
}

/** Chunks for one turn; a transition may end one turn and begin the next. */
export interface Run {
  turn: number;
  items: readonly Item[];
}

/** Columns of the session row to set, as `column = expression`. */
export type Patch = readonly Sql[];

/** What a transition appends and changes. */
export interface Transition {
  runs: readonly Run[];
  patch: Patch;
  /** What more must be true of the row. */
  conditions?: readonly Sql[];
  statements?: readonly Sql[];
  now: Date;
}

/**
 * Appends chunks and changes the session row together, in the caller's transaction; moves `head` on after the commit. Throws
 * `Fenced` where the row is not as the head says, or a condition fails: the transaction is then undone.
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

/** The same in a transaction of its own, which costs one round trip. */
export async function commitTransition(
  platform: Pick<Platform, 'db' | 'live' | 'wake' | 'metrics'>,
  head: JournalHead,
  transition: Transition,
): Promise<void> {
  const { statements, done } = planTransition(platform, head, transition);
  const took = platform.metrics.appendSeconds.startTimer({ path: 'transition' });
  await platform.db.batch(statements).catch(refuseFenced);
  took();
  done();
}

function planTransition(
  platform: Pick<Platform, 'live' | 'wake' | 'metrics'>,
  head: JournalHead,
  { runs, patch, conditions = [], statements = [], now }: Transition,
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
  if (segments.length > 0) set.push(sql`delivery_due = true`);

  // Nothing may be committed where the row did not match, and the statements travel together, before anyone could look at a
  // count: so the statement itself fails then, by a division by zero, and what stands behind it does not run.
  const update = sql`
    with updated as (
      update sessions s set ${join(set)}
      where s.organization_id = ${head.organizationId} and s.session_id = ${head.sessionId}
        and s.epoch = ${head.epoch} and s.turn = ${head.turn} and s.next_seq = ${head.nextSeq}
        ${join([sql``, ...conditions], ' and ')}
      returning s.session_id)
    select 1 / count(*) from updated`;

  const previous: Position = { turn: head.turn, seq: head.nextSeq - 1 };
  return {
    statements: [update, ...segments.map((segment) => insertSegment(head, segment)), ...statements],
    done() {
      head.turn = turn;
      head.nextSeq = nextSeq;
      for (const { seqFrom, seqTo } of segments) {
        platform.metrics.appendChunks.inc({ path: 'transition' }, seqTo - seqFrom + 1);
      }
      announce(platform, head.sessionId, previous, segments);
    },
  };
}

// PostgreSQL's code for the division in the statement above.
const DIVISION_BY_ZERO = '22012';

function refuseFenced(error: unknown): never {
  throw (error as { code?: string }).code === DIVISION_BY_ZERO ? new Fenced() : error;
}

/** The statement for a Session's first segment, written with the row itself. */
export function insertSegment(owner: { organizationId: string; sessionId: string }, segment: Segment): Sql {
  return sql`
    insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
    values (${owner.organizationId}, ${owner.sessionId}, ${segment.turn}, ${segment.seqTo}, ${segment.seqFrom},
      ${segment.body}, ${segment.createdAt})`;
}

function announce(
  { live, wake }: Pick<Platform, 'live' | 'wake'>,
  sessionId: string,
  previous: Position,
  segments: readonly Segment[],
): void {
  if (segments.length === 0) return;
  live.committed(sessionId, previous, segments);
  wake.publish('journal', sessionId);
}

/** Text of a held Session on its way into the journal. */
export interface TextHead extends JournalHead {
  /** Accepted, not yet written. */
  pending: string[];
  /** A high surrogate that waits for its other half. */
  carry: string;
  /** The write under way, which no transition may overtake. */
  writing: Promise<void> | undefined;
  /** The next delta is the first of a model call: what somebody waits to see, so it is written at once. */
  first: boolean;
  /** Called once when the epoch has moved on. */
  onFenced: () => void;
}

export interface Appender {
  /** Takes a delta; the promise resolves when there is room for the next, not when this one is written. */
  append(head: TextHead, delta: string): Promise<void>;
  /** Takes out what is not written yet, so that a transition can write it; waits for a write under way. */
  take(head: TextHead): Promise<string[]>;
  /** Writes what is pending. */
  close(): Promise<void>;
}

// Long enough to gather the tokens of many Sessions in one commit, short enough for nobody to see.
const GATHER_MS = 10;
const RETRY_MS = 100;
// One Session may be this far ahead of the database before its model is held up.
const MAX_PENDING_DELTAS = 2_000;
// Organizations in one statement: past this the planner no longer looks each of them up by the index.
const GROUP_ORGANIZATIONS = 32;
// Deltas of one Session in one segment, which bounds what a reader has to parse at once.
const MAX_SEGMENT_DELTAS = 1_000;

interface Batch {
  head: TextHead;
  deltas: string[];
}

export function createAppender(
  platform: Pick<Platform, 'db' | 'live' | 'wake' | 'log' | 'clock' | 'metrics'>,
): Appender {
  const { db, clock, log, metrics } = platform;
  const dirty = new Set<TextHead>();
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> | undefined;
  let urgent = false;
  /** Chunks of the flush under way that are committed. */
  let advanced = 0;

  function schedule(): void {
    if (urgent && !flushing) {
      if (timer) clearTimeout(timer);
      timer = undefined;
      // At the end of this turn of the event loop, so that what arrives with it goes along.
      flushing = new Promise<void>((resolve) => setImmediate(resolve)).then(flush);
    } else {
      // The time passes also while a flush is under way: what came during a slow one has been gathered when that ends.
      timer ??= setTimeout(() => {
        timer = undefined;
        if (flushing) urgent = true;
        else flushing = flush();
      }, GATHER_MS);
    }
  }

  async function flush(): Promise<void> {
    urgent = false;
    const batches: Batch[] = [];
    for (const head of dirty) {
      const deltas = head.pending.splice(0, MAX_SEGMENT_DELTAS);
      if (head.pending.length === 0) dirty.delete(head);
      if (deltas.length > 0) batches.push({ head, deltas });
    }
    const done = Promise.withResolvers<void>();
    for (const { head } of batches) head.writing = done.promise;
    try {
      await write(batches);
    } finally {
      for (const { head } of batches) head.writing = undefined;
      done.resolve();
      flushing = undefined;
      if (dirty.size > 0) schedule();
    }
  }

  async function write(batches: Batch[]): Promise<void> {
    if (batches.length === 0) return;
    const now = clock.now();
    const written = new Set<string>();
    let failed = false;
    const took = metrics.appendSeconds.startTimer({ path: 'text' });
    try {
      const statements = groupByOrganization(batches).map((group) => appendStatement(group, now));
      for (const { sessionId } of (await db.batch<{ sessionId: string }>(statements)).flat()) written.add(sessionId);
      took();
      metrics.appendSessions.observe(written.size);
    } catch (error) {
      failed = true;
      log.warn({ err: error, sessions: batches.length }, 'append failed; what was not written is written again');
    }
    const missed = batches.filter(({ head }) => !written.has(head.sessionId));
    for (const batch of batches) if (written.has(batch.head.sessionId)) advance(batch, now);
    if (missed.length > 0) await readAgain(missed, now);
    metrics.appendChunks.inc({ path: 'text' }, advanced);
    advanced = 0;
    // A full disk is not emptier in a moment.
    if (failed) await clock.sleep(RETRY_MS);
  }

  function advance({ head, deltas }: Batch, now: Date): void {
    const previous: Position = { turn: head.turn, seq: head.nextSeq - 1 };
    const segment: Segment = {
      turn: head.turn,
      seqFrom: head.nextSeq,
      seqTo: head.nextSeq + deltas.length - 1,
      body: encodeItems(deltas),
      createdAt: now,
    };
    head.nextSeq = segment.seqTo + 1;
    advanced += deltas.length;
    announce(platform, head.sessionId, previous, [segment]);
  }

  /**
   * A row that was not written was locked by somebody (it goes with the next flush), or was written before and the answer
   * was lost, or has another writer. The row itself says which.
   */
  async function readAgain(missed: Batch[], now: Date): Promise<void> {
    type Found = { sessionId: string; epoch: number; turn: number; nextSeq: number };
    let rows: Found[];
    try {
      rows = await db.query<Found>(sql`
        select session_id as "sessionId", epoch, turn, next_seq as "nextSeq" from sessions
        where organization_id = any(${[...new Set(missed.map(({ head }) => head.organizationId))]}::uuid[])
          and session_id = any(${missed.map(({ head }) => head.sessionId)}::uuid[])`);
    } catch {
      for (const batch of missed) putBack(batch);
      return;
    }
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const batch of missed) {
      const { head, deltas } = batch;
      const row = found.get(head.sessionId);
      if (!row || row.epoch !== head.epoch || row.turn !== head.turn || row.nextSeq > head.nextSeq + deltas.length) {
        dirty.delete(head);
        head.onFenced();
        continue;
      }
      // A commit whose answer was lost can come through later than its text was put back: then more stands behind it.
      const count = row.nextSeq - head.nextSeq;
      if (count > 0) advance({ head, deltas: deltas.slice(0, count) }, now);
      if (count < deltas.length) putBack({ head, deltas: deltas.slice(count) });
    }
  }

  function putBack({ head, deltas }: Batch): void {
    head.pending.unshift(...deltas);
    dirty.add(head);
  }

  return {
    async append(head, delta) {
      const text = wholeText(head, delta);
      if (text === '') return;
      urgent ||= head.first;
      head.first = false;
      head.pending.push(text);
      dirty.add(head);
      schedule();
      while (head.pending.length > MAX_PENDING_DELTAS && flushing) await flushing;
    },

    async take(head) {
      while (head.writing) await head.writing;
      dirty.delete(head);
      if (head.carry !== '') {
        head.pending.push('\uFFFD');
        head.carry = '';
      }
      return head.pending.splice(0);
    },

    async close() {
      if (timer) clearTimeout(timer);
      timer = undefined;
      await flushing;
      if (dirty.size > 0) await flush();
    },
  };
}

/** Never splits a surrogate pair over two deltas; drops NUL, which PostgreSQL cannot store. */
function wholeText(head: TextHead, delta: string): string {
  let text = head.carry + delta;
  head.carry = '';
  const last = text.charCodeAt(text.length - 1);
  if (last >= 0xd800 && last <= 0xdbff) {
    head.carry = text.slice(-1);
    text = text.slice(0, -1);
  }
  return text.replaceAll('\0', '').toWellFormed();
}

/** On one PostgreSQL some dozens of organizations at a time; on a sharded one this would be what lies on one shard. */
function groupByOrganization(batches: readonly Batch[]): Batch[][] {
  const groups: Batch[][] = [];
  let organizations = new Set<string>();
  for (const batch of batches.toSorted(byId)) {
    if (
      !organizations.has(batch.head.organizationId) &&
      (groups.length === 0 || organizations.size >= GROUP_ORGANIZATIONS)
    ) {
      groups.push([]);
      organizations = new Set();
    }
    organizations.add(batch.head.organizationId);
    groups.at(-1)!.push(batch);
  }
  return groups;
}

function byId(a: Batch, b: Batch): number {
  const [x, y] = [a.head.organizationId + a.head.sessionId, b.head.organizationId + b.head.sessionId];
  return x < y ? -1 : x > y ? 1 : 0;
}

/**
 * Rows in id order, so that two flushes cannot deadlock; a locked row is skipped. The lock is what makes the condition on
 * `epoch` hold until the commit: without it a claim can come between the check and the insert.
 */
function appendStatement(group: readonly Batch[], now: Date): Sql {
  const heads = group.map(({ head }) => head);
  const organizations = [...new Set(heads.map((head) => head.organizationId))];
  return sql`
    with i as (
      insert into segments as g (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      select s.organization_id, s.session_id, s.turn, b.expect + b.n - 1, b.expect, b.body, ${now}::timestamptz
      from sessions s
      join unnest(${heads.map((h) => h.organizationId)}::uuid[], ${heads.map((h) => h.sessionId)}::uuid[],
        ${heads.map((h) => h.epoch)}::int[], ${heads.map((h) => h.nextSeq)}::bigint[],
        ${group.map(({ deltas }) => deltas.length)}::int[], ${group.map(({ deltas }) => encodeItems(deltas))}::text[])
        as b(org, sid, epoch, expect, n, body)
        on s.organization_id = b.org and s.session_id = b.sid
      where s.organization_id = any(${organizations}::uuid[]) and s.epoch = b.epoch and s.next_seq = b.expect
      order by s.organization_id, s.session_id for no key update of s skip locked
      returning g.organization_id, g.session_id, g.seq_to)
    update sessions s set next_seq = i.seq_to + 1, delivery_due = true
    from i
    where s.organization_id = any(${organizations}::uuid[])
      and s.organization_id = i.organization_id and s.session_id = i.session_id
    returning s.session_id as "sessionId"`;
}
