// The fast path into the journal: text deltas of all active sessions of this node, and what else a model shows while it responds.
//
// They are batched and written by one statement for a group of organizations. A transition (append.ts) follows the session's
// text: it includes the unwritten text, and waits for a write in progress.
//
// An append writes a segment for each session. If the appender uses the tail (tail.ts), the first delta of a response is appended, and what
// follows is flushed into the tail. An append then moves it to a segment now and then, and so does the next transition. Sessions that
// webhooks deliver have no text in the tail: their text is due as soon as it is committed.
//
// What a flush wrote stays written: its chunks keep their seqs, also if its outcome is not known. Until it is known by an append, the
// session has no other flush, so a statement that arrives late adds only what an append adds as well.
//
// A commit contains text of one shard (db/shards.ts), and the shards are written independently, so one that is down or slow
// does not delay the others.
import { planForKeys } from '../db/plan-for-lookups.ts';
import { groupOrganizations, type Shard } from '../db/shards.ts';
import type { Platform } from '../platform.ts';
import { announceCommit, announceText } from './append.ts';
import { appendStatement, type Found, headsOf, keyOf, type WrittenHead } from './append-text.ts';
import { type Lane, newLane, roomOf } from './lanes.ts';
import { type Item, segmentOf } from './segment.ts';
import { endOfSegments, flushStatement } from './tail.ts';
import { createTailLimits, MAX_SEGMENT_DELTAS, MAX_UNFOLDED_MS } from './tail-limits.ts';
import { type Batch, batchOf, isUnsure, onePerSession, type TextHead, wholeText } from './text-head.ts';

export type { TextHead } from './text-head.ts';

/** How an appender uses the tail. */
export interface TailOptions {
  nodeId: string;
  /** Whether every other node reads it (tail-use.ts). */
  isAllowed: () => boolean;
}

export interface Appender {
  /** Takes a delta of text, or another chunk; the promise resolves when there is room for the next, not when this one is written. */
  append(head: TextHead, item: Item): Promise<void>;
  /** Removes and returns the unwritten text, so that a transition can write it; waits for a write in progress. */
  take(head: TextHead): Promise<Item[]>;
  /** Moves text to segments that is in the tail for longer than it may be, because its session has shown nothing since. */
  foldOld(): void;
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
// Concurrent commits of a shard: while PostgreSQL works on one, this process handles the response to another.
const MAX_WRITES = 2;
// A chunk waits for the commits before its own, and for its own: with fewer sessions in each it is soon written, with more a session
// costs less of a commit.
const MAX_SESSIONS = 256;
// What a flush costs is hardly more with more sessions.
const MAX_FLUSHED_SESSIONS = 2_000;
export function createAppender(
  platform: Pick<Platform, 'db' | 'shards' | 'live' | 'wake' | 'log' | 'clock' | 'metrics'>,
  tail?: TailOptions,
): Appender {
  const { db, shards, clock, log, metrics } = platform;
  /** Heads with pending deltas. */
  const dirty = new Set<TextHead>();
  const appends = newLane(MAX_WRITES);
  // One at a time, so that a reader of a flush has read those before it.
  const flushes = newLane(1);
  /** For the shards of new organizations. */
  const searches = newLane(1);
  let flushCount = 0;
  const limits = createTailLimits();
  /** Heads with text in the tail. */
  const open = new Set<TextHead>();
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
    const now = clock.now().getTime();
    for (const [shard, heads] of Map.groupBy(idle, shardOf)) {
      if (shard === undefined) {
        if (roomOf(searches, shard) > 0) begin(searches, shard, findShards(heads));
        continue;
      }
      const { true: toTail = [], false: toSegments = [] } = Object.groupBy(heads, (head) => `${isForTail(head, now)}`);
      // Heads that have waited longest come first.
      const parts = Math.ceil(toSegments.length / maxSessions);
      const size = Math.ceil(toSegments.length / parts);
      const writable = toSegments.slice(0, roomOf(appends, shard) * size);
      for (let at = 0; at < writable.length; at += size) beginWrite(appends, shard, writable.slice(at, at + size));
      const flushable = roomOf(flushes, shard) > 0 ? onePerSession(toTail).slice(0, MAX_FLUSHED_SESSIONS) : [];
      if (flushable.length > 0) beginWrite(flushes, shard, flushable);
      for (const head of [...toSegments, ...toTail]) if (!head.writing) due.add(head);
    }
  }

  function isForTail(head: TextHead, now: number): boolean {
    return head.unfolded?.isOpen === true && tail!.isAllowed() && limits.holds(head, now);
  }

  function shardOf({ organizationId }: TextHead): Shard | undefined {
    return shards.of(organizationId);
  }

  /** Whether something of this head can be written now. Otherwise the write that ends next does so. */
  function hasRoom(head: TextHead): boolean {
    const shard = shardOf(head);
    return roomOf(shard === undefined ? searches : head.unfolded?.isOpen ? flushes : appends, shard) > 0;
  }

  function begin({ underWay }: Lane, shard: Shard | undefined, work: Promise<void>): Promise<void> {
    const ofShard = underWay.get(shard) ?? new Set();
    underWay.set(shard, ofShard);
    const done = work.finally(() => {
      ofShard.delete(done);
      if (dirty.size > 0) schedule();
    });
    ofShard.add(done);
    return done;
  }

  function beginWrite(lane: Lane, shard: Shard, heads: TextHead[]): void {
    const batches = heads.map((head) => batchOf(head, head.pending.splice(0, MAX_SEGMENT_DELTAS), lane === flushes));
    for (const head of heads) {
      clean(head);
      // It waits behind the others, which have not had their turn.
      if (head.pending.length > 0) soil(head);
    }
    const release = () => {
      for (const head of heads) head.writing = undefined;
    };
    const work = lane === flushes ? writeToTail(batches) : write(batches);
    const done = begin(lane, shard, work.finally(release));
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

  /** Its text is written by its next writer. */
  function lose(head: TextHead): void {
    clean(head);
    open.delete(head);
    head.onFenced();
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
    const written = new Map<string, WrittenHead>();
    let failed = false;
    const took = metrics.appendSeconds.startTimer({ path: 'text' });
    try {
      const groups = groupOrganizations(batches, ({ head }) => head.organizationId);
      const place = tail?.isAllowed() ? { nodeId: tail.nodeId, flush: flushCount } : undefined;
      const statements = groups.map((group) => appendStatement(group, now, place));
      for (const row of (await db.batch<WrittenHead>([planForKeys, ...statements])).flat())
        written.set(keyOf(row), row);
      took();
      metrics.appendSessions.observe(written.size);
    } catch (error) {
      failed = true;
      // It may still arrive.
      for (const { head } of batches) if (head.unfolded) head.unfolded.isOpen = false;
      shards.failed(error);
      log.warn({ err: error, sessions: batches.length }, 'append failed; retrying');
    }
    // A session can briefly have two heads here, a fenced one and its successor: only the epoch says whose text it was.
    const missed = batches.filter(({ head }) => !written.has(keyOf(head)));
    for (const batch of batches) {
      const row = written.get(keyOf(batch.head));
      if (row) advance(batch, batch.items.length, row.isOpen ?? false, now);
    }
    if (missed.length > 0) await readAgain(missed, now);
    // After a failure, such as a full disk, wait before retrying.
    if (failed) await clock.sleep(RETRY_MS);
  }

  /** The first `count` items of the batch are in a segment. */
  function advance({ head, items, body }: Batch, count: number, isOpen: boolean, now: Date): void {
    const { turn, unfolded } = head;
    const stored = endOfSegments(head);
    const shown = { turn, seq: head.nextSeq - (unfolded?.hidden ?? 0) - 1 };
    const segment =
      count === items.length
        ? { turn, seqFrom: stored, seqTo: stored + count - 1, body, createdAt: now }
        : segmentOf(turn, stored, items.slice(0, count), now);
    head.nextSeq = Math.max(head.nextSeq, stored + count);
    head.unfolded = tail && {
      items: unfolded?.items.slice(count) ?? [],
      hidden: 0,
      isOpen,
      since: now.getTime(),
      characters: 0,
      flushedBefore: limits.flushedOf(head.organizationId),
    };
    const commit = { previous: { turn, seq: stored - 1 }, segments: [segment] };
    announceCommit(platform, { path: 'text', isText: true }, head, commit, shown);
  }

  async function writeToTail(batches: Batch[]): Promise<void> {
    const now = clock.now();
    flushCount += 1;
    const flush = flushCount;
    const took = metrics.appendSeconds.startTimer({ path: 'tail' });
    let added: Set<string>;
    try {
      const groups = groupOrganizations(batches, ({ head }) => head.organizationId);
      const statements = groups.map((group) =>
        flushStatement(
          tail!.nodeId,
          flush,
          group.map(({ head, items, body }) => ({ head, seqTo: head.nextSeq + items.length - 1, body })),
          now,
        ),
      );
      const rows = (await db.batch<{ sessionIds: string[] }>([planForKeys, ...statements])).flat();
      added = new Set(rows.flatMap(({ sessionIds }) => sessionIds ?? []));
      took();
      metrics.appendSessions.observe(added.size);
    } catch (error) {
      shards.failed(error);
      log.warn({ err: error, sessions: batches.length }, 'append failed; retrying');
      // Readers may have seen it.
      for (const batch of batches) keepUnfolded(batch, { isKnown: false });
      await clock.sleep(RETRY_MS);
      return;
    }
    for (const batch of batches) {
      const { head, items, body } = batch;
      if (!added.has(head.sessionId)) continue;
      const previous = { turn: head.turn, seq: head.nextSeq - 1 };
      const segment = { ...segmentOf(head.turn, head.nextSeq, [], now), seqTo: previous.seq + items.length, body };
      keepUnfolded(batch, { isKnown: true });
      announceText(platform, head, previous, segment);
    }
    const missed = batches.filter(({ head }) => !added.has(head.sessionId));
    if (missed.length > 0) await readAgain(missed, now);
  }

  /** It is in the tail, or may be. */
  function keepUnfolded({ head, items, body }: Batch, { isKnown }: { isKnown: boolean }): void {
    const unfolded = head.unfolded!;
    unfolded.items.push(...items);
    unfolded.characters += body.length;
    limits.count(head.organizationId, body);
    head.nextSeq += items.length;
    open.add(head);
    if (isKnown) return;
    unfolded.hidden += items.length;
    unfolded.isOpen = false;
    dirty.add(head);
  }

  /**
   * A row that was not written was locked (the next flush writes it), or was written by a commit whose response was lost, or
   * has another writer. The row itself says which. A row behind the head lacks commits that were acknowledged: the database is
   * now a standby that had not received them, or was restored to an earlier time. What follows them can't be written either.
   */
  async function readAgain(missed: Batch[], now: Date): Promise<void> {
    let rows: Found[];
    try {
      rows = await db.query<Found>(headsOf(missed));
    } catch (error) {
      shards.failed(error);
      for (const { head, deltas } of missed) putBack(head, deltas);
      return;
    }
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const batch of missed) {
      const { head, deltas, items } = batch;
      const row = found.get(head.sessionId);
      const stored = endOfSegments(head);
      const isBehind = row !== undefined && row.nextSeq < stored;
      // A flush does not move it.
      const isAhead = row !== undefined && row.nextSeq > stored + (batch.isFlush ? 0 : items.length);
      if (!row || row.epoch !== head.epoch || row.turn !== head.turn || isBehind || isAhead) {
        lose(head);
        continue;
      }
      // A commit whose response was lost can arrive after its text was put back; then more text follows it in the batch.
      const count = row.nextSeq - stored;
      const left = deltas.slice(Math.max(0, count - (items.length - deltas.length)));
      if (count > 0) advance(batch, count, false, now);
      if (left.length > 0 || isUnsure(head)) putBack(head, left);
    }
  }

  function putBack(head: TextHead, deltas: Item[]): void {
    head.pending.unshift(...deltas);
    dirty.add(head);
  }

  async function roomFor(head: TextHead): Promise<void> {
    while (dirty.has(head) && head.pending.length > MAX_PENDING_DELTAS) {
      const underWay = underWayFor(shardOf(head));
      await (underWay.length > 0 ? Promise.race(underWay) : new Promise<void>((resolve) => setImmediate(resolve)));
    }
  }

  /** What is under way for a shard, or for all. */
  function underWayFor(...shards: (Shard | undefined)[]): Promise<void>[] {
    const lanes = [appends, flushes, searches].flatMap(({ underWay }) => [...underWay]);
    return lanes.flatMap(([shard, writes]) => (shards.length === 0 || shards.includes(shard) ? [...writes] : []));
  }

  return {
    append(head, item) {
      const whole = typeof item === 'string' ? wholeText(head, item) : item;
      if (whole === '') return ROOM;
      head.pending.push(whole);
      soil(head);
      // Otherwise the next write of its shard does so when it ends.
      if (hasRoom(head)) schedule();
      return head.pending.length > MAX_PENDING_DELTAS ? roomFor(head) : ROOM;
    },

    async take(head) {
      while (head.writing) await head.writing;
      clean(head);
      // The transition moves it.
      open.delete(head);
      if (head.carry !== '') {
        head.pending.push('\uFFFD');
        head.carry = '';
      }
      return head.pending.splice(0);
    },

    foldOld() {
      const now = clock.now().getTime();
      for (const head of open) {
        if (!head.unfolded?.items.length) open.delete(head);
        else if (now - head.unfolded.since >= MAX_UNFOLDED_MS) dirty.add(head);
      }
      if (dirty.size > 0) schedule();
    },

    async close() {
      const ended = () => Promise.all(underWayFor());
      await ended();
      if ([...dirty].some((head) => shardOf(head) === undefined)) await findShards([...dirty]);
      // All at once, since there is no later flush.
      flush(dirty, dirty.size);
      await ended();
      clearTimeout(gathering);
    },
  };
}

// One promise for all that don't have to wait: there are tens of thousands of deltas per second.
const ROOM = Promise.resolve();
