// One listener: sends each session's chunks in order, batched as deliveries are.
//
// Commits are found in two ways. A wake-up names the session. A sweep looks at every session of the environment that may have a chunk
// since the watermark, at the start if the client resumes, when wake-ups may have been lost, and now and then.
//
// The watermark is the listener's cursor: every chunk that was committed before it has been sent. A finished sweep moves it to
// the sweep's start, less what the clocks of nodes and the time of a commit may differ. Only the positions of sessions with newer chunks
// are kept, so memory depends on what happens in two minutes, not on how many sessions there are.
//
// A client that reads nothing stops the loop in the middle of a batch: nothing more is read for it, and only ids are collected.
import type { ChunkType } from '@signalbox/contract';
import { COMMITTED_WITHIN_MS } from '../db/committed-within.ts';
import { maxTextWaitMs, nextStep } from '../deliveries/batch.ts';
import { positionsBefore } from '../deliveries/rewind.ts';
import { comparePositions, type Position } from '../journal/cursor.ts';
import { readAfterEach } from '../journal/read.ts';
import type { Segment } from '../journal/segment.ts';
import type { StreamPart } from '../journal/stream.ts';
import { OVER, onceAborted } from '../lib/aborted.ts';
import type { Platform } from '../platform.ts';
import { type Candidate, readHeads, type SessionHead, sweep } from './sweep.ts';

export type ReaderPlatform = Pick<Platform, 'db' | 'wake' | 'clock' | 'live'>;

export interface Listener {
  organizationId: string;
  environment: string;
  /** Only sessions of this agent. */
  agentId: string | undefined;
  chunkTypes: readonly ChunkType[];
  /** Chunks from this time on are sent. */
  since: Date;
  /** The client has been connected before, so there may be chunks since then. */
  isResumed: boolean;
}

/** A session with chunks since the watermark. */
interface Progress {
  /** Everything up to it was sent, or is not of the listener's types. */
  at: Position;
  /** When the last chunk up to it was committed. */
  committedAt: Date;
}

// Read by one statement, which reads at most 1 MiB and one segment.
const SESSIONS_AT_ONCE = 20;
const SWEEP_MS = 15_000;
/** The pause after a longer sweep, in lengths of the sweep: sweeping a large environment takes at most 2% of the time. */
const SWEEP_SHARE = 50;

export async function* readEnvironment(
  platform: ReaderPlatform,
  listener: Listener,
  signal: AbortSignal,
): AsyncGenerator<StreamPart> {
  const reader = new Reader(platform, listener, signal);
  const { wake } = platform;
  const unsubscribe = wake.subscribeToEnvironment(listener, (hint, from) => {
    if (!hint) return reader.sweepNow();
    if (from !== undefined) wake.follow(listener, from);
    reader.add(hint.sessionId);
  });
  // The next hint to all nodes about a response under way may be seconds away.
  wake.follow(listener, undefined);
  const forget = onceAborted(signal, () => reader.wakeUp());
  try {
    yield* reader.read();
  } finally {
    forget();
    unsubscribe();
  }
}

class Reader {
  readonly #platform: ReaderPlatform;
  readonly #listener: Listener;
  readonly #signal: AbortSignal;
  readonly #progress = new Map<string, Progress>();
  /** Sessions that may have chunks to send, in the order in which they are read. */
  readonly #due = new Set<string>();
  /** Sessions with text that waits for more text, and since when. */
  readonly #waiting = new Map<string, Date>();
  #watermark: Date;
  #sweepAt: number;
  #pause = new AbortController();

  constructor(platform: ReaderPlatform, listener: Listener, signal: AbortSignal) {
    this.#platform = platform;
    this.#listener = listener;
    this.#signal = signal;
    this.#watermark = listener.since;
    this.#sweepAt = platform.clock.now().getTime() + (listener.isResumed ? 0 : SWEEP_MS);
  }

  add(sessionId: string): void {
    this.#due.add(sessionId);
    this.wakeUp();
  }

  sweepNow(): void {
    this.#sweepAt = 0;
    this.wakeUp();
  }

  wakeUp(): void {
    this.#pause.abort(OVER);
  }

  async *read(): AsyncGenerator<StreamPart> {
    const { clock } = this.#platform;
    // From here on the client can resume, also if nothing is sent before it loses the connection.
    yield this.#cursor();
    while (!this.#signal.aborted) {
      this.#pause = new AbortController();
      yield* this.#sendDue();
      if (this.#signal.aborted) return;
      if (clock.now().getTime() >= this.#sweepAt) yield* this.#sweep();
      else if (this.#due.size === 0) await this.#sleep(this.#sweepAt);
    }
  }

  /** Until the time, a wake-up, or until text has waited long enough. */
  async #sleep(until: number): Promise<void> {
    const { clock } = this.#platform;
    // The first has waited longest.
    const [oldest] = this.#waiting.values();
    const ready = oldest ? oldest.getTime() + maxTextWaitMs : until;
    const ms = Math.min(until, ready) - clock.now().getTime();
    if (ms > 0) await clock.sleep(ms, this.#pause.signal).catch(() => {});
    const readyBefore = clock.now().getTime() - maxTextWaitMs;
    for (const [sessionId, since] of this.#waiting) {
      if (since.getTime() > readyBefore) return;
      this.#due.add(sessionId);
    }
  }

  async *#sweep(): AsyncGenerator<StreamPart> {
    const { clock } = this.#platform;
    const startedAt = clock.now().getTime();
    // A wake-up that is lost from here on makes another sweep.
    this.#sweepAt = Number.POSITIVE_INFINITY;
    for await (const page of sweep(this.#platform, this.#listener, this.#watermark, this.#signal)) {
      for (const candidate of page) if (this.#isBehind(candidate)) this.#due.add(candidate.sessionId);
      yield* this.#sendDue();
      if (this.#signal.aborted) return;
    }
    const over = clock.now().getTime();
    this.#sweepAt = Math.min(this.#sweepAt, over + Math.max(SWEEP_MS, (over - startedAt) * SWEEP_SHARE));
    if (startedAt - COMMITTED_WITHIN_MS <= this.#watermark.getTime()) return;
    this.#watermark = new Date(startedAt - COMMITTED_WITHIN_MS);
    for (const [sessionId, { committedAt }] of this.#progress) {
      if (committedAt < this.#watermark && !this.#waiting.has(sessionId) && !this.#due.has(sessionId))
        this.#progress.delete(sessionId);
    }
    yield this.#cursor();
  }

  #cursor(json: string | Buffer = ''): StreamPart {
    return { cursor: this.#watermark.toISOString(), json, isFirst: true, isLast: true };
  }

  /** The session was deleted, or is not one of the listener's. */
  #forget(sessionId: string): void {
    this.#progress.delete(sessionId);
    this.#waiting.delete(sessionId);
  }

  #isBehind({ sessionId, end }: Candidate): boolean {
    const progress = this.#progress.get(sessionId);
    return !progress || comparePositions(progress.at, end) < 0;
  }

  /** Until no session is due. Each gets one envelope in turn. */
  async *#sendDue(): AsyncGenerator<StreamPart> {
    while (this.#due.size > 0 && !this.#signal.aborted) {
      const sessionIds = [...this.#due].slice(0, SESSIONS_AT_ONCE);
      for (const sessionId of sessionIds) this.#due.delete(sessionId);
      for (const { head, segments, isEnd } of await this.#readJournals(sessionIds)) {
        const json = this.#next(head, segments, isEnd);
        if (json) yield this.#cursor(json);
        if (this.#signal.aborted) return;
      }
    }
  }

  async #readJournals(
    sessionIds: readonly string[],
  ): Promise<{ head: SessionHead; segments: readonly Segment[]; isEnd: boolean }[]> {
    const { db, live } = this.#platform;
    const { organizationId } = this.#listener;
    const read = async () => {
      // The ends are read first: a journal that then has nothing after a position up to its end has no chunk there.
      const heads = await readHeads(db, this.#listener, sessionIds);
      const here = new Set(heads.map(({ sessionId }) => sessionId));
      for (const sessionId of sessionIds) if (!here.has(sessionId)) this.#forget(sessionId);
      await this.#findBeginnings(heads.map(({ sessionId }) => sessionId));
      const known = heads.filter(({ sessionId }) => this.#progress.has(sessionId));
      if (known.length === 0) return [];
      const places = known.map(({ sessionId }) => ({
        organizationId,
        sessionId,
        after: this.#progress.get(sessionId)!.at,
      }));
      const found = await readAfterEach(db, places);
      return found.map((one, index) => ({ head: upTo(known[index]!, one.segments.at(-1)), ...one }));
    };
    return live.throughGate(organizationId, read, this.#signal).catch((error) => {
      // The client has left, or the node stops.
      if (this.#signal.aborted) return [];
      throw error;
    });
  }

  /** A session that is new to the listener starts with its first chunk since the watermark. */
  async #findBeginnings(sessionIds: readonly string[]): Promise<void> {
    const unknown = sessionIds.filter((sessionId) => !this.#progress.has(sessionId));
    const { organizationId } = this.#listener;
    const found = await positionsBefore(this.#platform.db, { organizationId }, unknown, this.#watermark);
    for (const { sessionId, turn, seq } of found) {
      this.#progress.set(sessionId, { at: { turn, seq }, committedAt: this.#platform.clock.now() });
    }
  }

  /** The session's next envelope; undefined if there is none yet. */
  #next(head: SessionHead, segments: readonly Segment[], isEnd: boolean): Buffer | undefined {
    const { sessionId } = head;
    const progress = this.#progress.get(sessionId);
    if (!progress) return undefined;
    if (segments.length === 0 && !isEnd) {
      // The other sessions' segments left no room for its own.
      this.#due.add(sessionId);
      return undefined;
    }
    const now = this.#platform.clock.now();
    const reading = { owner: head, after: progress.at, head: head.end, segments };
    const since = this.#waiting.get(sessionId);
    const waitedMs = since ? now.getTime() - since.getTime() : 0;
    const step = nextStep(reading, this.#listener.chunkTypes, waitedMs);
    if (step.kind === 'wait') {
      if (!since) this.#waiting.set(sessionId, now);
      return undefined;
    }
    this.#waiting.delete(sessionId);
    if (step.kind === 'nothing') return undefined;
    progress.at = step.through;
    progress.committedAt = segments.at(-1)?.createdAt ?? now;
    const hasMore = step.kind === 'send' ? step.more : comparePositions(step.through, head.end) < 0;
    if (hasMore || !isEnd) this.#due.add(sessionId);
    return step.kind === 'send' ? step.body : undefined;
  }
}

/** What was read can end later: text in the tail does, and so does what was committed since. */
function upTo(head: SessionHead, last: Segment | undefined): SessionHead {
  const end = last && { turn: last.turn, seq: last.seqTo };
  return end && comparePositions(end, head.end) > 0 ? { ...head, end } : head;
}
