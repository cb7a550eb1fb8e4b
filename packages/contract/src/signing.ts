/** What a delivery carries and how it is signed (source section 6.4, api.md section 7, "A delivery"). */

/** Headers of a delivery. The signature is lowercase hex of HMAC-SHA256 over `<timestamp>.<raw body>`. */
export const deliveryHeaders = {
  timestamp: 'x-service-timestamp',
  signature: 'x-service-signature',
  deliveryId: 'x-service-delivery-id',
  attempt: 'x-service-attempt',
  secretVersion: 'x-service-secret-version',
  previousCursor: 'x-service-previous-cursor',
} as const;

/** The same delivery as Standard Webhooks has it, so that its libraries verify as they are. */
export const standardHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

/** A receiver refuses a delivery whose timestamp is further than this from its own clock (source section 6.4). */
export const replayWindowSeconds = 300;

/** A signing secret is this and base64 of 32 bytes; the hex signature is keyed with the whole string. */
export const signingSecretPrefix = 'whsec_';
