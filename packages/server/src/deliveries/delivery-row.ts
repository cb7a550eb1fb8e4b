// Conversion between a delivery and its row.
import { type ChunkType, chunkTypes } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Delivery } from './delivery.ts';

// Each row contains its filter, which would be a third of the row if it were spelled out. The meaning of a letter never changes.
const letters: Readonly<Record<ChunkType, string>> = {
  'step.started': 'p',
  'message.started': 'b',
  'message.chunk': 'm',
  'reasoning.chunk': 'h',
  'tool.input.chunk': 'i',
  'session.status': 's',
  'tool.call': 'c',
  'tool.result': 'r',
  'file.created': 'f',
  'approval.requested': 'a',
  'approval.decided': 'v',
  'approval.resolved': 'd',
  'message.reset': 'x',
  'turn.completed': 't',
  'context.compacted': 'k',
};

/** A filter as stored in a row. */
export function encodeChunkTypes(types: readonly ChunkType[]): string {
  return types.map((type) => letters[type]).join('');
}

function typesOf(text: string): ChunkType[] {
  return chunkTypes.filter((type) => text.includes(letters[type]));
}

/** The columns of a delivery; all null if there is none. */
export interface DeliveryRow {
  deliveryId: string | null;
  previousCursor: string;
  fromTurn: number;
  fromSeq: number;
  toTurn: number;
  toSeq: number;
  /** One letter for each type. */
  chunkTypes: string;
  occurredAt: Date;
  attemptCount: number;
  retries: number;
  nextAttemptAt: Date | null;
  body: string | null;
}

/** The columns of `pending_deliveries d`. */
export function deliveryColumns(body: Sql = sql`d.body`): Sql {
  return sql`d.delivery_id as "deliveryId", d.previous_cursor as "previousCursor", d.from_turn as "fromTurn",
    d.from_seq as "fromSeq", d.to_turn as "toTurn", d.to_seq as "toSeq", d.chunk_types as "chunkTypes",
    d.occurred_at as "occurredAt", d.attempt_count as "attemptCount", d.retries, d.next_attempt_at as "nextAttemptAt",
    ${body} as body`;
}

/** The same columns of `webhook_deliveries d`: a finished delivery has no retries, and its body is rebuilt. */
export function finishedDeliveryColumns(): Sql {
  return sql`d.delivery_id as "deliveryId", d.previous_cursor as "previousCursor", d.from_turn as "fromTurn",
    d.from_seq as "fromSeq", d.to_turn as "toTurn", d.to_seq as "toSeq", d.chunk_types as "chunkTypes",
    d.occurred_at as "occurredAt", d.attempt_count as "attemptCount", 0 as retries, d.next_attempt_at as "nextAttemptAt",
    null::text as body`;
}

export function deliveryOf(sessionId: string, row: DeliveryRow): Delivery {
  return {
    deliveryId: row.deliveryId!,
    sessionId,
    previousCursor: row.previousCursor,
    from: { turn: row.fromTurn, seq: row.fromSeq },
    to: { turn: row.toTurn, seq: row.toSeq },
    chunkTypes: typesOf(row.chunkTypes),
    occurredAt: row.occurredAt,
    attemptCount: row.attemptCount,
    retries: row.retries,
    nextAttemptAt: row.nextAttemptAt,
    body: row.body,
  };
}
