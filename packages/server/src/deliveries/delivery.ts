// A delivery of one session's chunks, from when it is stored until it is finished.
import type { Position } from '../journal/cursor.ts';
import { newUuid } from '../lib/ids.ts';
import type { DeliveryContent } from './batch.ts';
import type { StoredAttempt } from './stored-attempt.ts';

/** A durable delivery: its id and content never change. */
export interface Delivery extends DeliveryContent {
  deliveryId: string;
  sessionId: string;
  /** Empty if nothing was acknowledged before. */
  previousCursor: string;
  attemptCount: number;
  retries: number;
  nextAttemptAt: Date | null;
  /** The bytes, stored since the first failure. */
  body: string | null;
}

/** One that was not attempted yet. */
export function newDelivery(sessionId: string, content: DeliveryContent, previousCursor: string): Delivery {
  return {
    ...content,
    deliveryId: newUuid(),
    sessionId,
    previousCursor,
    attemptCount: 0,
    retries: 0,
    nextAttemptAt: null,
    body: null,
  };
}

/** A delivery and its latest attempts: one, or two if both secrets were tried. */
export interface AttemptedDelivery {
  delivery: Delivery;
  attempts: readonly StoredAttempt[];
}

/** A finished delivery, and the position after which the session continues. */
export interface FinishedDelivery extends AttemptedDelivery {
  through: Position;
}
