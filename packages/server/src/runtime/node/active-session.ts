// A Session that this node holds: what may be written of it, and what has come for it.
//
// Every write is a transaction conditional on the Session's epoch. The Session is let go of (node_id null) in the very
// transaction that parks it or ends its turn, and only where nothing came meanwhile: that update is also conditional on the
// inbox count and the flags to close and to stop that this node knows.
import type { SessionStatus } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { EXPIRED, expiredApprovals } from '../../approvals/approvals.ts';
import { type ChunkRun, commitTransition, Fenced, type Patch } from '../../journal/append.ts';
import type { Appender, TextHead } from '../../journal/appender.ts';
import type { NewChunk } from '../../journal/segment.ts';
import type { Platform } from '../../platform.ts';
import { inboxChunks } from '../../sessions/inbox-chunks.ts';
import { deleteFromInbox, type InboxEntry, readInbox } from '../../sessions/state/inbox.ts';
import {
  notRunChunks,
  type Operation,
  readOperations,
  updateOperation,
  waitingForOf,
} from '../../sessions/state/operations.ts';
import type { SessionRow } from '../../sessions/state/session.ts';
import { resumedPatch, waitingPatch } from '../../sessions/state/status.ts';

/** What a transition changes; `next` is the turn that follows in the same transaction. */
export interface Change {
  items?: NewChunk[];
  next?: ChunkRun;
  patch?: Patch;
  statements?: Sql[];
}

export interface ActiveSession {
  /** As it was claimed; what others may change of it, and its status, turn and version are kept true. */
  readonly row: SessionRow;
  readonly head: TextHead;
  /** Aborted when the Session is lost, or the worker stops. */
  readonly signal: AbortSignal;
  abort(reason: Error): void;
  /** Messages that wait for a turn of their own, oldest first, as far as this node knows. */
  queued(): readonly QueuedMessage[];
  /** Something came for the Session: `came` resolves. */
  wake(): void;
  arrival(): Promise<void>;
  /** Writes the text on its way and the change in one transaction. Throws `Fenced` where the Session is lost. */
  commit(change: Change): Promise<void>;
  /** What the row counts of the present step ends with the next write: another begins, or the turn waits. */
  endCrashCount(): void;
  /** Columns that go with the next `commit`, because they are not worth a transaction. */
  setWithNextCommit(patch: Patch): void;
  /** Lets go of the Session with the change. False, and nothing is written, where something came meanwhile. */
  commitAndRelease(change: Change, operations: Operation[]): Promise<boolean>;
  /** Begins the turn of the first queued message with the change; false as above. */
  commitAndBegin(change: Change & { next: ChunkRun }, operations: Operation[]): Promise<boolean>;
  /**
   * Shows decisions and results that came, and approvals whose time is over, brings them into `operations`, and learns of
   * messages, of closing, and of whether to stop.
   */
  takeInbox(operations: Operation[]): Promise<void>;
}

export type QueuedMessage = InboxEntry & { kind: 'message' };

export interface ActiveSessionOptions {
  /** Whether calls that nobody decided on in time are refused, rather than the Session cancelled for them. */
  expires(): boolean;
  /** Somebody asked that the turn, or the Session, stop. */
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
    // The patch that begins a turn ends the count by itself.
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
      await takeInbox(operations); // throws Fenced itself where the Session is lost
      return false;
    }
  }

  async function takeInbox(operations: Operation[]): Promise<void> {
    while (!(await showArrivals(operations)));
  }

  /** False where more came while it was written. */
  async function showArrivals(operations: Operation[]): Promise<boolean> {
    arrived = Promise.withResolvers();
    // One after the other: with a decision that is in the inbox, what it grants must be seen.
    const entries = await readInbox(db, organizationId, sessionId);
    const [current] = await db.query<Current>(sql`
      select closing, epoch, turn, next_seq as "nextSeq", stop, granted_tools as "grantedTools" from sessions
      where organization_id = ${organizationId} and session_id = ${sessionId}`);
    // The journal may also have moved on under this very epoch: a commit came through whose answer was lost.
    if (current?.epoch !== head.epoch || current.turn !== head.turn || current.nextSeq !== head.nextSeq)
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
        // A decision that came first stands, however late it is shown.
        await write(change, late.length > 0 ? [sql`inbox = ${entries.length}`] : []);
      } catch (error) {
        if (error instanceof Fenced && late.length > 0) return false;
        throw error;
      }
      Object.assign(row, status.row);
    }
    for (const [index, operation] of operations.entries()) Object.assign(operation, after[index]);
    queued = entries
      .filter((entry) => entry.kind === 'message')
      .toSorted((a, b) => Number(b.steer ?? false) - Number(a.steer ?? false));
    if (row.stop) options.onStop(row.stop);
    return true;
  }

  /** A Session that was claimed while it waited says what it still waits for, or goes on. */
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

/** With what was decided elsewhere; what this node has under way is its own to know. */
function mergeStored(known: Operation, stored: Operation | undefined): Operation {
  if (!stored || !['awaiting_approval', 'awaiting_result', 'awaiting_session'].includes(known.status))
    return { ...known };
  const { status, input, output, error } = stored;
  return { ...known, status, input, output, error };
}

/** Calls that nobody decided on in time. */
export function expiredCalls(operations: readonly Operation[], now: Date): Operation[] {
  return operations.filter(
    ({ status, expiresAt }) => status === 'awaiting_approval' && expiresAt !== null && expiresAt <= now,
  );
}
