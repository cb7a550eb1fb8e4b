// How a turn begins: when a session is opened with input, when a message reaches an idle session, or when a queued message
// follows the previous turn. `beginTurn` plans what the transaction writes; `startTurn` follows its commit. A turn that failed
// continues in the same way (retry.ts).
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { type ChunkRun, type Patch, writeTransition } from '../journal/append.ts';
import { endOfJournal } from '../journal/cursor.ts';
import type { NewChunk } from '../journal/segment.ts';
import type { Platform } from '../platform.ts';
import type { TurnInput } from '../session-rows/inbox.ts';
import type { LocalRunner, LocalStart } from '../session-rows/local-start.ts';
import { insertOperation, newModelCall, type Operation } from '../session-rows/operations.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { insertEntry, type TranscriptEntry } from '../session-rows/transcript.ts';

export interface BegunTurn {
  turn: number;
  run: ChunkRun;
  patch: Patch;
  statements: Sql[];
  entry: TranscriptEntry;
  modelCall: Operation;
  traceParent: string | null;
}

export const running: NewChunk = { type: 'session.status', status: 'running', waitingFor: null };

/** The turn's first chunk, its row changes, its message, and its first model call, which is stored before it starts. */
export function beginTurn(
  owner: { organizationId: string; sessionId: string },
  turn: number,
  input: TurnInput,
  agentVersion: number,
  now: Date,
): BegunTurn {
  const { messageId, content, traceParent = null } = input;
  const entry: TranscriptEntry = { turn, position: 0, role: 'user', createdAt: now, messageId, content };
  const items = [running];
  const modelCall = { ...newModelCall(turn, 1, items.length + 1), agentVersion };
  return {
    turn,
    run: { turn, items },
    patch: runPatch(agentVersion, traceParent, now),
    statements: [insertEntry(owner, entry), insertOperation(owner, modelCall, now)],
    entry,
    modelCall,
    traceParent,
  };
}

/** The row of a session whose turn begins, or continues after a failure. */
export function runPatch(agentVersion: number, traceParent: string | null, now: Date): Patch {
  return [
    sql`status = 'running'`,
    sql`waiting_for = null`,
    sql`stop_reason = null`,
    sql`error = null`,
    sql`agent_version = ${agentVersion}`,
    sql`runnable_at = ${now}`,
    sql`queue = null`,
    sql`crashes = 0`,
    sql`stop = null`,
    // Set by the node that runs the turn: it reads the agent's time limit.
    sql`turn_deadline = null`,
    sql`trace_parent = ${traceParent}`,
  ];
}

/**
 * Runs a turn of an idle session whose row the caller has locked: on this node if it has room. `operations` are those that the
 * turn has by then. Returns the row.
 */
export async function runOnIdle(
  tx: Tx,
  ctx: Pick<Platform, 'live' | 'wake' | 'metrics' | 'localRunners'>,
  row: SessionRow,
  begun: Omit<BegunTurn, 'entry' | 'modelCall'> & { agentVersion: number; operations: Operation[] },
  now: Date,
): Promise<SessionRow> {
  const { turn, run, statements, traceParent, agentVersion, operations } = begun;
  const node = ctx.localRunners.withRoom(row.organizationId);
  const patch = [...begun.patch, ...(node ? [sql`node_id = ${node.nodeId}`, sql`epoch = epoch + 1`] : [])];
  await writeTransition(ctx, tx, { ...row }, { runs: [run], patch, statements, now });
  const after: SessionRow = {
    ...row,
    status: 'running',
    stopReason: null,
    error: null,
    crashes: 0,
    agentVersion,
    turn,
    nextSeq: (turn === row.turn ? row.nextSeq : 1) + run.items.length,
    traceParent,
    updatedAt: now,
    ...(node && { nodeId: node.nodeId, epoch: row.epoch + 1 }),
  };
  tx.afterCommit(() => startTurn(ctx, node, { row: after, operations }));
  return after;
}

/**
 * Starts a turn after the commit that began it: on `node`, the node that the commit put on the session's row; without one, by a
 * hint to all nodes that they can claim it.
 */
export function startTurn(
  { wake, live }: Pick<Platform, 'wake' | 'live'>,
  node: LocalRunner | undefined,
  turn: LocalStart,
): void {
  const { row } = turn;
  if (node) {
    live.startsHere(row.sessionId, endOfJournal(row));
    node.take(turn);
  } else {
    wake.publish('runnable', row);
  }
}
