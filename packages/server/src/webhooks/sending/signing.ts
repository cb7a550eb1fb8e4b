// The headers of one attempt: how a receiver knows that a delivery is ours, fresh and unchanged.
//
// Two signatures over the same bytes. The hex one is made with one secret, by default the newest. The one of Standard
// Webhooks may hold several, so during the grace period of a rotation it holds one of each secret.
import { createHmac } from 'node:crypto';
import { deliveryHeaders, signingSecretPrefix, standardHeaders } from '@signalbox/contract';

/** A secret in the two forms in which it is used as a key. */
export interface SigningSecret {
  version: number;
  /** The whole string, as the receiver has it: the key of the hex signature. */
  text: string;
  /** The bytes that it spells: the key of the Standard Webhooks signature. */
  bytes: Buffer;
}

export function signingSecret(version: number, text: string): SigningSecret {
  return { version, text, bytes: Buffer.from(text.slice(signingSecretPrefix.length), 'base64') };
}

export interface SignedAttempt {
  /** `whd_…`. */
  deliveryId: string;
  /** Counts from 1. */
  attempt: number;
  /** Empty where the receiver has acknowledged nothing yet. */
  previousCursor: string;
  body: Buffer;
  /** When it is sent. */
  now: Date;
  /** The secret of the hex signature. */
  signer: SigningSecret;
  /** Every secret that signs now, the newest first. */
  secrets: readonly SigningSecret[];
  /** Of the service, for `User-Agent`. */
  version: string;
}

/** What the headers hold that takes the body and a secret to make. */
export interface Signatures {
  /** With the signer's secret. */
  hex: string;
  /** Of Standard Webhooks: one of each secret. */
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

/** The headers of an attempt that was signed before. */
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
