// An attempt as its delivery's row keeps it: of its headers only what nothing else says, which is a fraction of them. The bytes of a
// row are written twice for each delivery.
import { deliveryHeaders, standardHeaders, type WebhookAttempt } from '@signalbox/contract';
import { formatId } from '../../lib/ids.ts';
import type { Delivery } from './delivery.ts';
import { headersWith, type Signatures } from './signing.ts';

export interface StoredAttempt extends Omit<WebhookAttempt, 'requestHeaders'> {
  sent: Signatures & {
    /** Of the service. */
    version: string;
  };
}

/** What is to be kept of the headers of an attempt. */
export function storedHeaders(headers: Record<string, string>, version: string): StoredAttempt['sent'] {
  return { hex: headers[deliveryHeaders.signature]!, standard: headers[standardHeaders.signature]!, version };
}

/** As its row holds it: what is null is left out. */
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

/** With the headers as they were sent. */
export function viewAttempt(
  { deliveryId, previousCursor }: Pick<Delivery, 'deliveryId' | 'previousCursor'>,
  { sent, ...attempt }: StoredAttempt,
): WebhookAttempt {
  const requestHeaders = headersWith(
    {
      deliveryId: formatId('whd', deliveryId),
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
