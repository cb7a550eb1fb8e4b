// An active session: the fenced handle through which a node writes a session that it has claimed, and reads its inbox.
//
// Every write is a transaction conditional on the session's epoch. The transaction that parks the session or ends its turn also
// releases it (node_id null), but only if nothing arrived in the meantime: it is conditional on the inbox count and on the flags
// `closing` and `stop` as this node last read them.
import type { SessionStatus } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { EXPIRED, expiredApprovals } from '../approvals/approvals.ts';
import { type ChunkRun, commitTransition, Fenced, type Patch } from '../journal/append.ts';
import type { Appender, TextHead } from '../journal/appender.ts';
import type { NewChunk } from '../journal/segment.ts';
import { endOfSegments } from '../journal/tail.ts';
import { shortOrText } from '../lib/json/json-text.ts';
import type { Platform } from '../platform.ts';
import { deleteFromInbox, type InboxEntry, readInbox } from '../session-rows/inbox.ts';
import {
  notRunChunks,
  type Operation,
  readOperations,
  updateOperation,
  waitingForOf,
} from '../session-rows/operations.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { resumedPatch, waitingPatch } from '../session-rows/status.ts';
import { inboxChunks } from '../sessions/inbox-chunks.ts';

/** What a transition changes; `next` is the turn that follows in the same transaction. */
export interface Change {
  items?: NewChunk[];
  next?: ChunkRun;
  patch?: Patch;
  statements?: Sql[];
}

export interface ActiveSession {
  /** As it was claimed. Its status, turn and version are kept up to date, and so is what API calls may change. */
  readonly row: SessionRow;
  readonly head: TextHead;
  /** Aborted when the session is lost, or the node stops. */
  readonly signal: AbortSignal;
  abort(reason: Error): void;
  /** Messages that wait for a turn of their own, oldest first, as of the last read of the inbox. */
  queued(): readonly QueuedMessage[];
  /** Something arrived for the session: `arrival()` resolves. */
  wake(): void;
  arrival(): Promise<void>;
  /** Writes pending text and the change in one transaction. Throws `Fenced` if the session is lost. */
  commit(change: Change): Promise<void>;
  /** Resets the count of crashes with the next write, because the step is over. */
  endCrashCount(): void;
  /** Columns to set with the next `commit`, because they are not worth a transaction of their own. */
  setWithNextCommit(patch: Patch): void;
  /** Releases the session with the change. False, and nothing is written, if something arrived in the meantime. */
  commitAndRelease(change: Change, operations: Operation[]): Promise<boolean>;
  /** Begins the turn of the first queued message with the change; false as above. */
  commitAndBegin(change: Change & { next: ChunkRun }, operations: Operation[]): Promise<boolean>;
  /**
   * Writes decisions and results from the inbox, and expired approvals, to the journal and into `operations`. Also reads queued
   * messages and whether the session is to close or stop.
   */
  takeInbox(operations: Operation[]): Promise<void>;
}

export type QueuedMessage = InboxEntry & { kind: 'message' };

export interface ActiveSessionOptions {
  /** Whether expired approvals deny their calls, instead of cancelling the session. */
  expires(): boolean;
  /** The turn, or the session, is to stop. */
  onStop(stop: NonNullable<SessionRow['stop']>): void;
}

type Current = Pick<SessionRow, 'closing' | 'epoch' | 'turn' | 'nextSeq' | 'stop' | 'grantedTools'>;

export function createActiveSession(
  row: SessionRow,
  platform: Platform,
  appender: Appender,
  options: ActiveSessionOptions,
): ActiveSession {
  const { db, clock } = platform;
  const { organizationId, environment, sessionId, epoch, turn, nextSeq } = row;
  const stop = new AbortController();
  const head: TextHead = {
    organizationId,
    environment,
    sessionId,
    epoch,
    turn,
    nextSeq,
    pending: [],
    carry: '',
    writing: undefined,
    first: true,
    onFenced: () => stop.abort(new Fenced()),
  };
  let queued: QueuedMessage[] = [];
  let arrived = Promise.withResolvers<void>();
  let alongside: Patch = [];
  let endsCrashCount = false;

  async function write(change: Change, conditions: Sql[]): Promise<void> {
    const text = await appender.take(head);
    const now = clock.now();
    // The patch that begins a turn resets the count by itself.
    const endsCount = endsCrashCount && !change.next;
    try {
      await commitTransition(platform, head, {
        runs: [{ turn: head.turn, items: [...text, ...(change.items ?? [])] }, ...(change.next ? [change.next] : [])],
        patch: [...(change.patch ?? []), ...(endsCount ? [sql`crashes = 0`] : [])],
        statements: change.statements ?? [],
        conditions,
        now,
      });
    } catch (error) {
      head.pending.unshift(...text);
      throw error;
    }
    if (endsCrashCount) row.crashes = 0;
    endsCrashCount = false;
  }

  async function writeUnlessWoken(change: Change, operations: Operation[]): Promise<boolean> {
    try {
      await write(change, [
        sql`inbox = ${queued.length}`,
        sql`closing = ${row.closing}`,
        sql`stop is not distinct from ${row.stop}`,
      ]);
      return true;
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
      await takeInbox(operations); // throws Fenced if the session is lost
      return false;
    }
  }

  async function takeInbox(operations: Operation[]): Promise<void> {
    while (!(await showArrivals(operations)));
  }

  /** False if more arrived while it was written. */
  async function showArrivals(operations: Operation[]): Promise<boolean> {
    arrived = Promise.withResolvers();
    // All entries up to the last queued message are known: the others were shown and deleted, and new ones come after the last that
    // is in the table.
    const known = Math.max(0, ...queued.map(({ position }) => position));
    // In this order: the row must be at least as new as the decisions in the inbox, which may grant tools.
    const entries = await readInbox(db, organizationId, sessionId, known);
    const [current] = await db.query<Current>(sql`
      select closing, epoch, turn, next_seq as "nextSeq", stop, granted_tools as "grantedTools" from sessions
      where organization_id = ${organizationId} and session_id = ${sessionId}`);
    // The journal may have moved on under the same epoch: by a commit whose acknowledgement was lost.
    if (current?.epoch !== head.epoch || current.turn !== head.turn || current.nextSeq !== endOfSegments(head))
      throw new Fenced();
    Object.assign(row, { closing: current.closing, stop: current.stop, grantedTools: current.grantedTools });
    const shown = entries.filter(({ kind }) => kind !== 'message');
    const now = clock.now();
    const stored = shown.length === 0 ? [] : await readOperations(db, organizationId, sessionId, row.turn);
    const byId = new Map(stored.map((operation) => [operation.operationId, operation]));
    const after = operations.map((operation) => mergeStored(operation, byId.get(operation.operationId)));
    const late = options.expires() ? expiredCalls(after, now) : [];
    const expired = expiredApprovals(
      row,
      late.map(({ operationId }) => operationId),
      now,
    );
    for (const call of late) Object.assign(call, { status: 'denied', error: EXPIRED });
    if (shown.length > 0 || late.length > 0) {
      const status = statusAfter(after, now);
      const change = {
        items: [...inboxChunks(shown, stored), ...expired.chunks, ...late.flatMap(notRunChunks), ...status.items],
        patch: [sql`inbox = inbox - ${shown.length}`, ...status.patch],
        statements: [
          deleteFromInbox(row, shown),
          ...expired.statements,
          ...late.map((call) => updateOperation(row, call, now)),
        ],
      };
      try {
        // A decision that arrived first wins, even if it is shown after the expiry.
        await write(change, late.length > 0 ? [sql`inbox = ${queued.length + entries.length}`] : []);
      } catch (error) {
        if (error instanceof Fenced && late.length > 0) return false;
        throw error;
      }
      Object.assign(row, status.row);
    }
    for (const [index, operation] of operations.entries()) Object.assign(operation, after[index]);
    queued = [...queued, ...entries.filter((entry) => entry.kind === 'message')].toSorted(
      (a, b) => Number(b.steer ?? false) - Number(a.steer ?? false),
    );
    if (row.stop) options.onStop(row.stop);
    return true;
  }

  /** A session that was claimed while it waited shows what it still waits for, or resumes. */
  function statusAfter(operations: readonly Operation[], now: Date) {
    if (row.status !== 'waiting') return { items: [], patch: [], row: {} };
    const waitingFor = waitingForOf(operations);
    const status: SessionStatus = waitingFor ? 'waiting' : 'running';
    const item: NewChunk = { type: 'session.status', status, waitingFor };
    const left = row.turnLeftMs;
    return {
      items: [item],
      patch: waitingFor ? waitingPatch(waitingFor, left) : resumedPatch(left, now),
      row: { status, waitingFor, turnDeadline: left === null || waitingFor ? null : new Date(now.getTime() + left) },
    };
  }

  return {
    row,
    head,
    signal: stop.signal,
    abort: (reason) => stop.abort(reason),
    queued: () => queued,
    wake: () => arrived.resolve(),
    arrival: () => arrived.promise,
    async commit(change) {
      const { patch = [] } = change;
      await write({ ...change, patch: [...patch, ...alongside] }, []);
      alongside = [];
    },
    endCrashCount() {
      endsCrashCount = row.crashes > 0;
    },
    setWithNextCommit: (patch) => {
      alongside = patch;
    },
    commitAndRelease: (change, operations) =>
      writeUnlessWoken({ ...change, patch: [...(change.patch ?? []), sql`node_id = null`] }, operations),
    async commitAndBegin(change, operations) {
      const [first] = queued;
      if (!first) throw new Error('No message waits for a turn');
      const statements = [...(change.statements ?? []), deleteFromInbox(row, [first])];
      const patch = [...(change.patch ?? []), sql`inbox = inbox - 1`];
      if (!(await writeUnlessWoken({ ...change, patch, statements }, operations))) return false;
      queued = queued.slice(1);
      alongside = [];
      Object.assign(row, { turn: change.next.turn, stop: null, turnDeadline: null, turnLeftMs: null, crashes: 0 });
      return true;
    },
    takeInbox,
  };
}

/** Takes over decisions that other nodes stored. Operations that run on this node are newer here than in the database. */
function mergeStored(known: Operation, stored: Operation | undefined): Operation {
  if (!stored || !['awaiting_approval', 'awaiting_result', 'awaiting_session'].includes(known.status))
    return { ...known };
  const { status, input, output, error } = stored;
  return { ...known, status, input, output: shortOrText(output), error };
}

/** Calls whose approvals have expired. */
export function expiredCalls(operations: readonly Operation[], now: Date): Operation[] {
  return operations.filter(
    ({ status, expiresAt }) => status === 'awaiting_approval' && expiresAt !== null && expiresAt <= now,
  );
}
