// The fast path into the journal: text deltas of all active sessions of this node, and what else a model shows while it responds.
//
// They are batched and written by one statement for a group of organizations. A transition (append.ts) follows the session's
// text: it includes the unwritten text, and waits for a write in progress.
//
// A commit contains text of one shard (db/shards.ts), and the shards are written independently, so one that is down or slow
// does not delay the others.
import sql, { type Sql } from 'sql-template-tag';
import { planForKeys } from '../db/plan-for-lookups.ts';
import { groupOrganizations, type Shard } from '../db/shards.ts';
import { textArray } from '../db/values.ts';
import { storableText } from '../lib/text.ts';
import type { Platform } from '../platform.ts';
import { announceCommit, type JournalHead } from './append.ts';
import type { Position } from './cursor.ts';
import { deliveryMark } from './delivery-mark.ts';
import { encodeItems, type Item, type Segment } from './segment.ts';

/** Unwritten text of an active session. */
export interface TextHead extends JournalHead {
  /** Accepted, not yet written. */
  pending: Item[];
  /** A high surrogate that waits for its other half. */
  carry: string;
  /** The write in progress, which no transition may overtake. */
  writing: Promise<void> | undefined;
  /** The next delta is the first of a model call, which users wait for, so it is written at once. */
  first: boolean;
  /** Called once, when the session has a higher epoch. */
  onFenced: () => void;
}

export interface Appender {
  /** Takes a delta of text, or another chunk; the promise resolves when there is room for the next, not when this one is written. */
  append(head: TextHead, item: Item): Promise<void>;
  /** Removes and returns the unwritten text, so that a transition can write it; waits for a write in progress. */
  take(head: TextHead): Promise<Item[]>;
  /** Writes what is pending. */
  close(): Promise<void>;
}

// Between the starts of two flushes: long enough to batch several deltas of each session and many sessions, too short to be noticed. At
// 40 deltas a second, 40 ms take less than half of the database's time that 10 ms take.
const GATHER_MS = 40;
// A session with so many deltas does not wait, since its row costs hardly less with more of them.
const ENOUGH_DELTAS = 32;
const RETRY_MS = 100;
// A session may be this far ahead of the database before its model has to wait.
const MAX_PENDING_DELTAS = 2_000;
// Deltas of one session in one segment, which bounds what a reader has to parse at once.
const MAX_SEGMENT_DELTAS = 1_000;
// Concurrent commits of a shard: while PostgreSQL works on one, this process handles the response to another.
const MAX_WRITES = 2;
// A chunk waits for the commits before its own, and for its own: with fewer sessions in each it is soon written, with more a session
// costs less of a commit.
const MAX_SESSIONS = 256;

interface Batch {
  head: TextHead;
  deltas: Item[];
  body: string;
}

export function createAppender(
  platform: Pick<Platform, 'db' | 'shards' | 'live' | 'wake' | 'log' | 'clock' | 'metrics'>,
): Appender {
  const { db, shards, clock, log, metrics } = platform;
  /** Heads with pending deltas. */
  const dirty = new Set<TextHead>();
  /** In progress, by shard; for `undefined` the search for the shards of new organizations. */
  const writes = new Map<Shard | undefined, Set<Promise<void>>>();
  /** The dirty heads that don't wait for `gathering`: with a first delta or much text, or for which there was no room. */
  const due = new Set<TextHead>();
  /** While it runs, the text of the other heads is collected. */
  let gathering: NodeJS.Timeout | undefined;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || (gathering && due.size === 0)) return;
    scheduled = true;
    // At the end of this tick of the event loop, so that text that arrives together is written together.
    setImmediate(() => {
      scheduled = false;
      if (gathering) return flush(due);
      gathering = setTimeout(() => {
        gathering = undefined;
        if (dirty.size > 0) schedule();
      }, GATHER_MS);
      flush(dirty);
    });
  }

  function flush(ready: ReadonlySet<TextHead>, maxSessions = MAX_SESSIONS): void {
    const idle = [...ready].filter(({ writing }) => !writing);
    for (const [shard, heads] of Map.groupBy(idle, shardOf)) {
      if (shard === undefined) {
        if (roomOf(shard) > 0) begin(shard, findShards(heads));
        continue;
      }
      // Heads that have waited longest come first.
      const parts = Math.ceil(heads.length / maxSessions);
      const size = Math.ceil(heads.length / parts);
      const writable = heads.slice(0, roomOf(shard) * size);
      for (let at = 0; at < writable.length; at += size) beginWrite(shard, writable.slice(at, at + size));
      for (const head of heads.slice(writable.length)) due.add(head);
    }
  }

  function shardOf({ organizationId }: TextHead): Shard | undefined {
    return shards.of(organizationId);
  }

  function roomOf(shard: Shard | undefined): number {
    return (shard === undefined ? 1 : MAX_WRITES) - (writes.get(shard)?.size ?? 0);
  }

  function begin(shard: Shard | undefined, work: Promise<void>): Promise<void> {
    const underWay = writes.get(shard) ?? new Set();
    writes.set(shard, underWay);
    const done = work.finally(() => {
      underWay.delete(done);
      if (dirty.size > 0) schedule();
    });
    underWay.add(done);
    return done;
  }

  function beginWrite(shard: Shard, heads: TextHead[]): void {
    const batches = heads.map((head) => batchOf(head, head.pending.splice(0, MAX_SEGMENT_DELTAS)));
    for (const head of heads) {
      clean(head);
      // It waits behind the others, which have not had their turn.
      if (head.pending.length > 0) soil(head);
    }
    const release = () => {
      for (const head of heads) head.writing = undefined;
    };
    const done = begin(shard, write(batches).finally(release));
    for (const head of heads) head.writing = done;
  }

  /** There is text to write. */
  function soil(head: TextHead): void {
    dirty.add(head);
    if (head.first || head.pending.length >= ENOUGH_DELTAS) due.add(head);
    head.first = false;
  }

  function clean(head: TextHead): void {
    dirty.delete(head);
    due.delete(head);
  }

  async function findShards(heads: readonly TextHead[]): Promise<void> {
    try {
      await shards.find(heads.map(({ organizationId }) => organizationId));
    } catch (error) {
      log.warn({ err: error, sessions: heads.length }, 'append failed; retrying');
      await clock.sleep(RETRY_MS);
    }
  }

  async function write(batches: Batch[]): Promise<void> {
    const now = clock.now();
    const written = new Set<string>();
    let failed = false;
    const took = metrics.appendSeconds.startTimer({ path: 'text' });
    try {
      const groups = groupOrganizations(batches, ({ head }) => head.organizationId);
      const statements = groups.map((group) => appendStatement(group, now));
      for (const row of (await db.batch<HeadKey>([planForKeys, ...statements])).flat()) written.add(keyOf(row));
      took();
      metrics.appendSessions.observe(written.size);
    } catch (error) {
      failed = true;
      shards.failed(error);
      log.warn({ err: error, sessions: batches.length }, 'append failed; retrying');
    }
    // A session can briefly have two heads here, a fenced one and its successor: only the epoch says whose text it was.
    const missed = batches.filter(({ head }) => !written.has(keyOf(head)));
    for (const batch of batches) if (written.has(keyOf(batch.head))) advance(batch, now);
    if (missed.length > 0) await readAgain(missed, now);
    // After a failure, such as a full disk, wait before retrying.
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
    announceCommit(platform, { path: 'text', isText: true }, head, previous, [segment]);
  }

  /**
   * A row that was not written was locked (the next flush writes it), or was written by a commit whose response was lost, or
   * has another writer. The row itself says which. A row behind the head lacks commits that were acknowledged: the database is
   * now a standby that had not received them, or was restored to an earlier time. What follows them can't be written either.
   */
  async function readAgain(missed: Batch[], now: Date): Promise<void> {
    type Found = { sessionId: string; epoch: number; turn: number; nextSeq: number };
    let rows: Found[];
    try {
      rows = await db.query<Found>(sql`
        select h.sid as "sessionId", s.epoch, s.turn, s.next_seq as "nextSeq"
        from unnest(${missed.map(({ head }) => head.organizationId)}::uuid[],
          ${missed.map(({ head }) => head.sessionId)}::uuid[]) as h(org, sid)
        cross join lateral (
          select x.epoch, x.turn, x.next_seq from sessions x
          where x.organization_id = any(${organizationsOf(missed)}::uuid[]) and x.organization_id = h.org
            and x.session_id = h.sid
          limit 1) s`);
    } catch (error) {
      shards.failed(error);
      for (const { head, deltas } of missed) putBack(head, deltas);
      return;
    }
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const { head, deltas } of missed) {
      const row = found.get(head.sessionId);
      const isBehind = row !== undefined && row.nextSeq < head.nextSeq;
      const isAhead = row !== undefined && row.nextSeq > head.nextSeq + deltas.length;
      if (!row || row.epoch !== head.epoch || row.turn !== head.turn || isBehind || isAhead) {
        clean(head);
        head.onFenced();
        continue;
      }
      // A commit whose response was lost can arrive after its text was put back; then more text follows it in the batch.
      const count = row.nextSeq - head.nextSeq;
      if (count > 0) advance(batchOf(head, deltas.slice(0, count)), now);
      if (count < deltas.length) putBack(head, deltas.slice(count));
    }
  }

  function putBack(head: TextHead, deltas: Item[]): void {
    head.pending.unshift(...deltas);
    dirty.add(head);
  }

  async function roomFor(head: TextHead): Promise<void> {
    while (dirty.has(head) && head.pending.length > MAX_PENDING_DELTAS) {
      const underWay = writes.get(shardOf(head));
      await (underWay?.size ? Promise.race(underWay) : new Promise<void>((resolve) => setImmediate(resolve)));
    }
  }

  return {
    append(head, item) {
      const whole = typeof item === 'string' ? wholeText(head, item) : item;
      if (whole === '') return ROOM;
      head.pending.push(whole);
      soil(head);
      // Otherwise the next write of its shard does so when it ends.
      if (roomOf(shardOf(head)) > 0) schedule();
      return head.pending.length > MAX_PENDING_DELTAS ? roomFor(head) : ROOM;
    },

    async take(head) {
      while (head.writing) await head.writing;
      clean(head);
      if (head.carry !== '') {
        head.pending.push('\uFFFD');
        head.carry = '';
      }
      return head.pending.splice(0);
    },

    async close() {
      const ended = () => Promise.all([...writes.values()].flatMap((underWay) => [...underWay]));
      await ended();
      if ([...dirty].some((head) => shardOf(head) === undefined)) await findShards([...dirty]);
      // All at once, since there is no later flush.
      flush(dirty, dirty.size);
      await ended();
      clearTimeout(gathering);
    },
  };
}

type HeadKey = Pick<JournalHead, 'sessionId' | 'epoch'>;

function keyOf({ sessionId, epoch }: HeadKey): string {
  return `${sessionId} ${epoch}`;
}

function organizationsOf(batches: readonly Batch[]): string[] {
  return [...new Set(batches.map(({ head }) => head.organizationId))];
}

// One promise for all that don't have to wait: there are tens of thousands of deltas per second.
const ROOM = Promise.resolve();

function batchOf(head: TextHead, deltas: Item[]): Batch {
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

/**
 * `found` locks the rows, except those that are locked already. The lock makes the condition on `epoch` true until the commit: without
 * it a claim can come between the check and the insert. Each row is looked up by a lateral join: as a plain join, a database without
 * statistics compares each session of the batch with all of its organization's.
 *
 * The insert takes its values from `found`, which looked at the locked row, and the update reaches that row by its key, also if another
 * transaction changed it after the statement began. (By `ctid` it would not be much faster, and Citus refuses that.)
 */
function appendStatement(group: readonly Batch[], now: Date): Sql {
  const heads = group.map(({ head }) => head);
  const organizations = organizationsOf(group);
  return sql`
    with found as materialized (
      select x.organization_id, x.session_id, x.turn, x.id, b.expect, b.n, b.body
      from unnest(${heads.map((h) => h.organizationId)}::uuid[], ${heads.map((h) => h.sessionId)}::uuid[],
        ${heads.map((h) => h.epoch)}::int[], ${heads.map((h) => h.turn)}::int[], ${heads.map((h) => h.nextSeq)}::bigint[],
        ${group.map(({ deltas }) => deltas.length)}::int[], ${textArray(group.map(({ body }) => body))}::text[])
        as b(org, sid, epoch, turn, expect, n, body)
      cross join lateral (
        select x.organization_id, x.session_id, x.turn, w.webhook_subscription_id as id from sessions x
        left join webhook_subscriptions w on w.organization_id = any(${organizations}::uuid[])
          and w.organization_id = x.organization_id and w.environment = x.environment
        where x.organization_id = any(${organizations}::uuid[]) and x.organization_id = b.org and x.session_id = b.sid
          and x.epoch = b.epoch and x.turn = b.turn and x.next_seq = b.expect
        for no key update of x skip locked) x),
    i as (
      insert into segments as g (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      select d.organization_id, d.session_id, d.turn, d.expect + d.n - 1, d.expect, d.body, ${now}::timestamptz from found d)
    update sessions s set next_seq = d.expect + d.n, ${deliveryMark()}
    from found d
    where s.organization_id = any(${organizations}::uuid[])
      and s.organization_id = d.organization_id and s.session_id = d.session_id
    returning s.session_id as "sessionId", s.epoch`;
}
