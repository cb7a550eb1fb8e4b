// A Session that this node holds: what may be written of it, and what has come for it.
//
// Every write is a transaction conditional on the Session's epoch. The Session is let go of (worker_id null) in the very
// transaction that parks it or ends its turn, and only where nothing came meanwhile: that update is also conditional on the
// inbox count and the closing flag that this node knows.
import sql, { type Sql } from 'sql-template-tag';
import { resolvedChunk } from '../approvals/approvals.ts';
import { type Appender, commitTransition, Fenced, type Patch, type Run, type TextHead } from '../journal/append.ts';
import type { NewChunk } from '../journal/segment.ts';
import type { Platform } from '../platform.ts';
import { deleteFromInbox, type InboxEntry, readInbox } from '../sessions/inbox.ts';
import { type Operation, readOperations, resultChunk } from '../sessions/operations.ts';
import type { SessionRow } from '../sessions/session.ts';

/** What a transition changes; `next` is the turn that follows in the same transaction. */
export interface Change {
  items?: NewChunk[];
  next?: Run;
  patch?: Patch;
  statements?: Sql[];
}

export interface Hold {
  /** As it was claimed; `turn`, `agentVersion` and `closing` are kept true. */
  readonly row: SessionRow;
  readonly head: TextHead;
  /** Aborted when the Session is lost, or the worker stops. */
  readonly signal: AbortSignal;
  abort(reason: Error): void;
  /** Messages that wait for a turn of their own, oldest first, as far as this node knows. */
  queued(): readonly QueuedMessage[];
  /** Something came for the Session: `came` resolves. */
  wake(): void;
  came(): Promise<void>;
  /** Writes the text on its way and the change in one transaction. Throws `Fenced` where the Session is lost. */
  commit(change: Change): Promise<void>;
  /** Lets go of the Session with the change. False, and nothing is written, where something came meanwhile. */
  commitAndRelease(change: Change, operations: Operation[]): Promise<boolean>;
  /** Begins the turn of the first queued message with the change; false as above. */
  commitAndBegin(change: Change & { next: Run }, operations: Operation[]): Promise<boolean>;
  /** Shows decisions and results that came, brings them into `operations`, and learns of messages and of closing. */
  takeInbox(operations: Operation[]): Promise<void>;
}

export type QueuedMessage = InboxEntry & { kind: 'message' };

export function createHold(row: SessionRow, platform: Platform, appender: Appender): Hold {
  const { db, clock } = platform;
  const { organizationId, sessionId, epoch, turn, nextSeq } = row;
  const stop = new AbortController();
  const head: TextHead = {
    organizationId,
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
  let came = Promise.withResolvers<void>();

  async function write(change: Change, conditions: Sql[]): Promise<void> {
    const text = await appender.take(head);
    const now = clock.now();
    try {
      await commitTransition(platform, head, {
        runs: [{ turn: head.turn, items: [...text, ...(change.items ?? [])] }, ...(change.next ? [change.next] : [])],
        patch: change.patch ?? [],
        statements: change.statements ?? [],
        conditions,
        now,
      });
    } catch (error) {
      head.pending.unshift(...text);
      throw error;
    }
  }

  async function writeUnlessSomethingCame(change: Change, operations: Operation[]): Promise<boolean> {
    try {
      await write(change, [sql`inbox = ${queued.length}`, sql`closing = ${row.closing}`]);
      return true;
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
      await takeInbox(operations); // throws Fenced itself where the Session is lost
      return false;
    }
  }

  async function takeInbox(operations: Operation[]): Promise<void> {
    came = Promise.withResolvers();
    const [entries, [current]] = await Promise.all([
      readInbox(db, organizationId, sessionId),
      db.query<{ closing: boolean; epoch: number; turn: number; nextSeq: number }>(sql`
        select closing, epoch, turn, next_seq as "nextSeq" from sessions
        where organization_id = ${organizationId} and session_id = ${sessionId}`),
    ]);
    // The journal may also have moved on under this very epoch: a commit came through whose answer was lost.
    if (current?.epoch !== head.epoch || current.turn !== head.turn || current.nextSeq !== head.nextSeq)
      throw new Fenced();
    row.closing = current.closing;
    const shown = entries.filter(({ kind }) => kind !== 'message');
    if (shown.length > 0) {
      const stored = await readOperations(db, organizationId, sessionId, row.turn);
      const byId = new Map(stored.map((operation) => [operation.operationId, operation]));
      const change = {
        items: shown.flatMap((entry) => chunkOf(entry, byId)),
        patch: [sql`inbox = inbox - ${shown.length}`],
        statements: [deleteFromInbox(row, shown)],
      };
      await write(change, []);
      for (const operation of operations) bringUpToDate(operation, byId.get(operation.operationId));
    }
    queued = entries.filter((entry) => entry.kind === 'message');
  }

  return {
    row,
    head,
    signal: stop.signal,
    abort: (reason) => stop.abort(reason),
    queued: () => queued,
    wake: () => came.resolve(),
    came: () => came.promise,
    commit: (change) => write(change, []),
    commitAndRelease: (change, operations) =>
      writeUnlessSomethingCame({ ...change, patch: [...(change.patch ?? []), sql`worker_id = null`] }, operations),
    async commitAndBegin(change, operations) {
      const [first] = queued;
      if (!first) throw new Error('No message waits for a turn');
      const statements = [...(change.statements ?? []), deleteFromInbox(row, [first])];
      const patch = [...(change.patch ?? []), sql`inbox = inbox - 1`];
      if (!(await writeUnlessSomethingCame({ ...change, patch, statements }, operations))) return false;
      queued = queued.slice(1);
      row.turn = change.next.turn;
      return true;
    },
    takeInbox,
  };
}

function chunkOf(entry: InboxEntry, operations: ReadonlyMap<string, Operation>): NewChunk[] {
  if (entry.kind === 'approval') return [resolvedChunk(entry.operationId, entry.decision, entry.reason ?? null)];
  const operation = entry.kind === 'tool_result' ? operations.get(entry.operationId) : undefined;
  return operation ? [resultChunk(operation)] : [];
}

/** What was decided elsewhere; what this node has under way is its own to know. */
function bringUpToDate(known: Operation, stored: Operation | undefined): void {
  if (!stored || (known.status !== 'awaiting_approval' && known.status !== 'awaiting_result')) return;
  const { status, output, error } = stored;
  Object.assign(known, { status, output, error });
}
