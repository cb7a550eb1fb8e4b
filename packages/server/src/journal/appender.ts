// The fast path into the journal: deltas of text of all Sessions that this node holds.
//
// They are gathered and written by one statement for a group of organizations. What a transition writes of a Session
// (append.ts) comes behind its text: it takes along what is not written yet, and waits for what is being written.
import sql, { type Sql } from 'sql-template-tag';
import { textArray } from '../db/values.ts';
import { storableText } from '../lib/text.ts';
import type { Platform } from '../platform.ts';
import { announce, type JournalHead } from './append.ts';
import type { Position } from './cursor.ts';
import { encodeItems, type Segment } from './segment.ts';

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

// Between the beginnings of two flushes: long enough to gather the tokens of many Sessions, short enough for nobody to see.
const GATHER_MS = 10;
const RETRY_MS = 100;
// One Session may be this far ahead of the database before its model is held up.
const MAX_PENDING_DELTAS = 2_000;
// Organizations in one statement: past this the planner no longer looks each of them up by the index.
const GROUP_ORGANIZATIONS = 32;
// Deltas of one Session in one segment, which bounds what a reader has to parse at once.
const MAX_SEGMENT_DELTAS = 1_000;
// Commits under way at once: while PostgreSQL works on one, this process takes in what another has done.
const MAX_WRITES = 2;
// Fewer Sessions are not worth a commit of their own.
const MIN_SESSIONS = 100;

interface Batch {
  head: TextHead;
  deltas: string[];
  body: string;
}

export function createAppender(
  platform: Pick<Platform, 'db' | 'live' | 'wake' | 'log' | 'clock' | 'metrics'>,
): Appender {
  const { db, clock, log, metrics } = platform;
  /** Those with pending deltas. */
  const dirty = new Set<TextHead>();
  const writes = new Set<Promise<void>>();
  /** While it runs, what is not urgent is gathered. */
  let gathering: NodeJS.Timeout | undefined;
  let urgent = false;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || writes.size >= MAX_WRITES || (gathering && !urgent)) return;
    scheduled = true;
    // At the end of this turn of the event loop, so that what arrives with it goes along.
    setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    urgent = false;
    clearTimeout(gathering);
    gathering = setTimeout(() => {
      gathering = undefined;
      if (dirty.size > 0) schedule();
    }, GATHER_MS);
    const heads = [...dirty].filter(({ writing }) => !writing).toSorted(byId);
    const parts = Math.min(MAX_WRITES - writes.size, Math.max(1, Math.floor(heads.length / MIN_SESSIONS)));
    if (parts < 1) return;
    const size = Math.ceil(heads.length / parts);
    for (let at = 0; at < heads.length; at += size) begin(heads.slice(at, at + size));
  }

  function begin(heads: TextHead[]): void {
    const batches = heads.map((head) => batchOf(head, head.pending.splice(0, MAX_SEGMENT_DELTAS)));
    for (const head of heads) if (head.pending.length === 0) dirty.delete(head);
    const done = write(batches).finally(() => {
      for (const head of heads) head.writing = undefined;
      writes.delete(done);
      if (dirty.size > 0) schedule();
    });
    for (const head of heads) head.writing = done;
    writes.add(done);
  }

  async function write(batches: Batch[]): Promise<void> {
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
    // A full disk is not emptier in a moment.
    if (failed) await clock.sleep(RETRY_MS);
  }

  function advance({ head, deltas, body }: Batch, now: Date): void {
    const previous: Position = { turn: head.turn, seq: head.nextSeq - 1 };
    const segment: Segment = {
      turn: head.turn,
      seqFrom: head.nextSeq,
      seqTo: head.nextSeq + deltas.length - 1,
      body,
      createdAt: now,
    };
    head.nextSeq = segment.seqTo + 1;
    metrics.appendChunks.inc({ path: 'text' }, deltas.length);
    announce(platform, head, previous, [segment]);
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
      for (const { head, deltas } of missed) putBack(head, deltas);
      return;
    }
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const { head, deltas } of missed) {
      const row = found.get(head.sessionId);
      if (!row || row.epoch !== head.epoch || row.turn !== head.turn || row.nextSeq > head.nextSeq + deltas.length) {
        dirty.delete(head);
        head.onFenced();
        continue;
      }
      // A commit whose answer was lost can come through later than its text was put back: then more stands behind it.
      const count = row.nextSeq - head.nextSeq;
      if (count > 0) advance(batchOf(head, deltas.slice(0, count)), now);
      if (count < deltas.length) putBack(head, deltas.slice(count));
    }
  }

  function putBack(head: TextHead, deltas: string[]): void {
    head.pending.unshift(...deltas);
    dirty.add(head);
  }

  async function roomFor(head: TextHead): Promise<void> {
    while (dirty.has(head) && head.pending.length > MAX_PENDING_DELTAS) {
      await (writes.size > 0 ? Promise.race(writes) : new Promise<void>((resolve) => setImmediate(resolve)));
    }
  }

  return {
    append(head, delta) {
      const text = wholeText(head, delta);
      if (text === '') return ROOM;
      head.pending.push(text);
      const isFull = head.pending.length > MAX_PENDING_DELTAS;
      urgent ||= head.first || isFull;
      head.first = false;
      dirty.add(head);
      schedule();
      return isFull ? roomFor(head) : ROOM;
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
      await Promise.all(writes);
      flush();
      await Promise.all(writes);
      clearTimeout(gathering);
    },
  };
}

// One promise for all that need not wait: there are tens of thousands of deltas a second.
const ROOM = Promise.resolve();

function batchOf(head: TextHead, deltas: string[]): Batch {
  return { head, deltas, body: encodeItems(deltas) };
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
  return storableText(text);
}

/** On one PostgreSQL some dozens of organizations at a time; on a sharded one this would be what lies on one shard. */
function groupByOrganization(batches: readonly Batch[]): Batch[][] {
  const groups: Batch[][] = [];
  let organizations = new Set<string>();
  for (const batch of batches) {
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

function byId(a: TextHead, b: TextHead): number {
  return compare(a.organizationId, b.organizationId) || compare(a.sessionId, b.sessionId);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Rows in id order, so that two flushes cannot deadlock; a locked row is skipped. The lock is what makes the condition on
 * `epoch` hold until the commit: without it a claim can come between the check and the insert.
 *
 * The rows are looked up one by one, by a lateral join: as a plain join, a database without statistics compares each Session
 * of the batch with all of its organization's.
 */
function appendStatement(group: readonly Batch[], now: Date): Sql {
  const heads = group.map(({ head }) => head);
  const organizations = [...new Set(heads.map((head) => head.organizationId))];
  return sql`
    with i as (
      insert into segments as g (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      select s.organization_id, s.session_id, s.turn, b.expect + b.n - 1, b.expect, b.body, ${now}::timestamptz
      from unnest(${heads.map((h) => h.organizationId)}::uuid[], ${heads.map((h) => h.sessionId)}::uuid[],
        ${heads.map((h) => h.epoch)}::int[], ${heads.map((h) => h.nextSeq)}::bigint[],
        ${group.map(({ deltas }) => deltas.length)}::int[], ${textArray(group.map(({ body }) => body))}::text[])
        as b(org, sid, epoch, expect, n, body)
      cross join lateral (
        select x.organization_id, x.session_id, x.turn from sessions x
        where x.organization_id = any(${organizations}::uuid[]) and x.organization_id = b.org and x.session_id = b.sid
          and x.epoch = b.epoch and x.next_seq = b.expect
        for no key update of x skip locked) s
      returning g.organization_id, g.session_id, g.seq_to)
    update sessions s set next_seq = i.seq_to + 1, delivery_due = true
    from i
    where s.organization_id = any(${organizations}::uuid[])
      and s.organization_id = i.organization_id and s.session_id = i.session_id
    returning s.session_id as "sessionId"`;
}
