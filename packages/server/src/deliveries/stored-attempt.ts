// An attempt as stored in the row of its delivery: of its headers only those that can't be derived from the rest. The size matters
// because the row of a delivery is written twice.
import { deliveryHeaders, standardHeaders, type WebhookAttempt } from '@signalbox/contract';
import type { OutgoingDelivery } from './attempt.ts';
import { headersWith, type Signatures } from './destinations/signing.ts';

export interface StoredAttempt extends Omit<WebhookAttempt, 'requestHeaders'> {
  sent: Signatures & {
    /** The version of the service, for `User-Agent`. */
    version: string;
  };
}

/** The headers of an attempt that must be stored. */
export function storedHeaders(headers: Record<string, string>, version: string): StoredAttempt['sent'] {
  return { hex: headers[deliveryHeaders.signature]!, standard: headers[standardHeaders.signature]!, version };
}

/** The JSON that is stored; fields that are null are omitted. */
export function attemptText({ status, error, responseBody, ...attempt }: StoredAttempt): string {
  return JSON.stringify({
    ...attempt,
    status: status ?? undefined,
    error: error ?? undefined,
    responseBody: responseBody ?? undefined,
  });
}

export function parseAttempt(text: string): StoredAttempt {
  return { status: null, error: null, responseBody: null, ...JSON.parse(text) };
}

/** An attempt as the API shows it, with the headers as they were sent. */
export function viewAttempt(
  { deliveryId, previousCursor }: Pick<OutgoingDelivery, 'deliveryId' | 'previousCursor'>,
  { sent, ...attempt }: StoredAttempt,
): WebhookAttempt {
  const requestHeaders = headersWith(
    {
      deliveryId,
      attempt: attempt.attempt,
      previousCursor,
      now: new Date(attempt.at),
      version: sent.version,
      secretVersion: attempt.secretVersion,
    },
    sent,
  );
  return { ...attempt, requestHeaders };
}
