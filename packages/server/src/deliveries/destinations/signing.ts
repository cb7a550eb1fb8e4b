// The headers of an attempt, from which the receiver verifies that a delivery is authentic, recent and unchanged.
//
// There are two signatures over the same bytes. The hex signature is computed with one secret, by default the newest. The Standard
// Webhooks header may contain several signatures: during the grace period of a rotation it has one for each secret.
import { createHmac } from 'node:crypto';
import { deliveryHeaders, signingSecretPrefix, standardHeaders } from '@signalbox/contract';

/** A secret in the two forms that are used as keys. */
export interface SigningSecret {
  version: number;
  /** The whole string, as shown to the integrator: the key of the hex signature. */
  text: string;
  /** The decoded bytes: the key of the Standard Webhooks signature. */
  bytes: Buffer;
}

export function signingSecret(version: number, text: string): SigningSecret {
  return { version, text, bytes: Buffer.from(text.slice(signingSecretPrefix.length), 'base64') };
}

export interface SignedAttempt {
  /** `whd_…`. */
  deliveryId: string;
  /** Starts at 1. */
  attempt: number;
  /** Empty if the receiver has not acknowledged anything yet. */
  previousCursor: string;
  body: Buffer;
  /** The time of the attempt. */
  now: Date;
  /** The secret for the hex signature. */
  signer: SigningSecret;
  /** All secrets to sign with, the newest first. */
  secrets: readonly SigningSecret[];
  /** The version of the service, for `User-Agent`. */
  version: string;
}

/** The headers that depend on the body and a secret. */
export interface Signatures {
  /** Computed with the signer's secret. */
  hex: string;
  /** The Standard Webhooks signatures, one for each secret. */
  standard: string;
}

export function headersOf(attempt: SignedAttempt): Record<string, string> {
  const { deliveryId, body, signer } = attempt;
  const timestamp = timestampOf(attempt.now);
  const hex = createHmac('sha256', signer.text).update(`${timestamp}.`).update(body).digest('hex');
  const standard = attempt.secrets.map(({ bytes }) => {
    const mac = createHmac('sha256', bytes).update(`${deliveryId}.${timestamp}.`).update(body);
    return `v1,${mac.digest('base64')}`;
  });
  return headersWith({ ...attempt, secretVersion: signer.version }, { hex, standard: standard.join(' ') });
}

/** The headers of an attempt whose signatures exist already. */
export function headersWith(
  attempt: Omit<SignedAttempt, 'body' | 'signer' | 'secrets'> & { secretVersion: number },
  { hex, standard }: Signatures,
): Record<string, string> {
  const { deliveryId } = attempt;
  const timestamp = timestampOf(attempt.now);
  return {
    'content-type': 'application/json',
    'user-agent': `Signalbox/${attempt.version}`,
    [deliveryHeaders.timestamp]: timestamp,
    [deliveryHeaders.signature]: hex,
    [deliveryHeaders.deliveryId]: deliveryId,
    [deliveryHeaders.attempt]: String(attempt.attempt),
    [deliveryHeaders.secretVersion]: String(attempt.secretVersion),
    [deliveryHeaders.previousCursor]: attempt.previousCursor,
    [standardHeaders.id]: deliveryId,
    [standardHeaders.timestamp]: timestamp,
    [standardHeaders.signature]: standard,
  };
}

function timestampOf(now: Date): string {
  return String(Math.floor(now.getTime() / 1000));
}
