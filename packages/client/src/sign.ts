/** Signs webhooks as the service does: for tests of receivers, and for programs that forward deliveries. */
import { now as systemNow } from './time.ts';
import { deliveryHeaders, signingSecretPrefix, standardHeaders } from './types.generated.ts';
import { version } from './version.ts';

export interface SignOptions {
  /** `whsec_…` */
  secret: string;
  /** `whd_…`; the same in each attempt of a delivery. */
  deliveryId: string;
  /** Counts from 1. Default: 1. */
  attempt?: number | undefined;
  /** The cursor that the receiver acknowledged last in the session. Default: empty, for the first delivery. */
  previousCursor?: string | undefined;
  /** The clock. Default: the system's. */
  now?: (() => Date) | undefined;
}

/**
 * The headers of a delivery with this body, with both signatures.
 *
 * @throws TypeError if the secret is not a signing secret
 */
export async function sign(rawBody: string | Uint8Array, options: SignOptions): Promise<Record<string, string>> {
  const { secret, deliveryId, attempt = 1, previousCursor = '', now = systemNow } = options;
  if (!isSigningSecret(secret)) throw new TypeError(`secret must be ${signingSecretPrefix} and the base64 of 32 bytes`);
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody;
  const timestamp = String(Math.floor(now().getTime() / 1000));
  const [hex, standard] = await Promise.all([
    hmac(new TextEncoder().encode(secret), `${timestamp}.`, body),
    hmac(bytesOf(secret), `${deliveryId}.${timestamp}.`, body),
  ]);
  return {
    'content-type': 'application/json',
    'user-agent': `Signalbox/${version}`,
    [deliveryHeaders.timestamp]: timestamp,
    [deliveryHeaders.signature]: Array.from(hex, (byte) => byte.toString(16).padStart(2, '0')).join(''),
    [deliveryHeaders.deliveryId]: deliveryId,
    [deliveryHeaders.attempt]: String(attempt),
    [deliveryHeaders.secretVersion]: '1',
    [deliveryHeaders.previousCursor]: previousCursor,
    [standardHeaders.id]: deliveryId,
    [standardHeaders.timestamp]: timestamp,
    [standardHeaders.signature]: `v1,${btoa(String.fromCharCode(...standard))}`,
  };
}

/** A new signing secret, as the service makes them. */
export function createSigningSecret(): string {
  return `${signingSecretPrefix}${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`;
}

export function isSigningSecret(text: string): boolean {
  return text.startsWith(signingSecretPrefix) && /^[A-Za-z0-9+/]{43}=$/.test(text.slice(signingSecretPrefix.length));
}

function bytesOf(secret: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(secret.slice(signingSecretPrefix.length)), (character) => character.charCodeAt(0));
}

async function hmac(key: Uint8Array<ArrayBuffer>, start: string, body: Uint8Array): Promise<Uint8Array> {
  const prefix = new TextEncoder().encode(start);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const imported = await crypto.subtle.importKey('raw', key, algorithm, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, signed));
}
