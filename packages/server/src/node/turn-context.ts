// What the parts of a turn runner share: the running turn as the database has it, and how its events and logs are written.
import type { FilePart, SessionStatus, Usage } from '@signalbox/contract';
import type { Sql } from 'sql-template-tag';
import { type EventDraft, type EventSource, recordEvent } from '../events/record.ts';
import type { TextHead } from '../journal/appender.ts';
import type { NewChunk } from '../journal/segment.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { HeldMemory } from '../lib/memory.ts';
import type { Span } from '../observe/tracing.ts';
import type { Platform } from '../platform.ts';
import { type Operation, usageOf } from '../session-rows/operations.ts';
import { type SessionRow, viewEndUser } from '../session-rows/session.ts';
import type { TranscriptEntry } from '../session-rows/transcript.ts';
import type { TurnEnd, TurnState } from '../turn/turn.ts';
import type { ActiveSession } from './active-session.ts';
import { recordTurnEnd } from './telemetry.ts';

export interface TurnContext {
  readonly platform: Platform;
  readonly session: ActiveSession;
  state: TurnState;
  /** The position of the turn's next transcript entry. */
  position: number;
  startedAt: Date;
  /** The span of the turn, while this node runs it. */
  span?: Span | undefined;
  /** When the turn times out. */
  deadline: Date;
  /** The files that running calls have returned, by `op_…`. */
  createdFiles?: Map<string, FilePart[]>;
  /** What the results of running calls take, by `op_…`. */
  heldResults?: Map<string, HeldMemory>;
}

/** What the state of a turn has of the session's row. */
export function partsOfRow(row: SessionRow) {
  const { organizationId, sessionId, environment, turn, leftOut } = row;
  return {
    organizationId,
    sessionId: formatId('ses', sessionId),
    environment,
    endUser: viewEndUser(row),
    turn,
    leftOut,
  };
}

/** The agent, as the source of events. */
export function agentSource({ session: { row }, state }: TurnContext): EventSource {
  const actor = { type: 'agent' as const, id: formatId('agt', row.agentId), name: state.definition.name };
  return { organizationId: row.organizationId, actor, requestId: null, ipAddress: null, userAgent: null };
}

export function agentEvent(context: TurnContext, draft: EventDraft): Sql {
  return recordEvent(agentSource(context), context.platform.clock.now(), draft);
}

/** The turn's next transcript entry. */
export function nextEntry(
  context: TurnContext,
  { role, content, providerData }: Pick<TranscriptEntry, 'role' | 'content' | 'providerData'>,
  createdAt: Date,
  messageId = newUuid(),
): TranscriptEntry {
  const { position } = context;
  context.position += 1;
  return { turn: context.session.row.turn, position, messageId, role, content, providerData, createdAt };
}

/** The entry that the turn machine has added. It has an id from then on: a response has that of its model call. */
export function addedEntry(context: TurnContext, createdAt: Date): TranscriptEntry {
  const added = context.state.transcript.at(-1)!;
  const entry = nextEntry(context, added, createdAt, added.messageId as string | undefined);
  added.messageId = entry.messageId;
  return entry;
}

/** The chunk that voids what has been shown since the model call began; none if nothing was. */
export function voidedText({ nextSeq }: Pick<TextHead, 'nextSeq'>, { fromSeq }: Operation): NewChunk[] {
  return nextSeq > fromSeq! ? [{ type: 'message.reset', fromSeq: fromSeq! }] : [];
}

/** What the turn used so far. */
export function turnUsage({ state }: TurnContext): Usage {
  return usageOf(state.operations);
}

export function logIds({ session: { row } }: TurnContext) {
  return {
    organizationId: formatId('org', row.organizationId),
    sessionId: formatId('ses', row.sessionId),
    agentId: formatId('agt', row.agentId),
    turn: row.turn,
  };
}

export function logTurn(context: TurnContext, end: TurnEnd, status: SessionStatus, turn: number): void {
  const { clock, log } = context.platform;
  const { steps, toolCalls, inputTokens, outputTokens } = turnUsage(context);
  const durationMs = clock.now().getTime() - context.startedAt.getTime();
  const { stopReason } = end;
  const code = stopReason === 'error' ? end.error.code : undefined;
  log.info(
    { ...logIds(context), turn, stopReason, code, status, steps, toolCalls, inputTokens, outputTokens, durationMs },
    'turn',
  );
  recordTurnEnd(context, stopReason, code);
}
