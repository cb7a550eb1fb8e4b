/** The headers of a delivery and its signature. */

/** Headers of a delivery. The signature is lowercase hex of HMAC-SHA256 over `<timestamp>.<raw body>`. */
export const deliveryHeaders = {
  timestamp: 'x-service-timestamp',
  signature: 'x-service-signature',
  deliveryId: 'x-service-delivery-id',
  attempt: 'x-service-attempt',
  secretVersion: 'x-service-secret-version',
  previousCursor: 'x-service-previous-cursor',
} as const;

/** The Standard Webhooks headers of the same delivery, so that its libraries can verify it unchanged. */
export const standardHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

/** How far a delivery's timestamp may be from the receiver's clock, in seconds, either way. */
export const replayWindowSeconds = 300;

/** A signing secret is this prefix and the base64 of 32 bytes; the key of the hex signature is the whole string. */
export const signingSecretPrefix = 'whsec_';
