/**
 * Verifies webhooks: a delivery is from the service, and unchanged.
 *
 * The signature is HMAC-SHA256 over `<timestamp>.<raw body>`, keyed with the whole signing secret. It is computed over the raw
 * bytes: a body that was parsed and serialized again has other bytes. Web Crypto compares in constant time, on every
 * runtime.
 */
import { now } from './time.ts';
import { deliveryHeaders, type Envelope, replayWindowSeconds } from './types.generated.ts';

/** Headers from Node, `fetch` (of any implementation), a `Map` or a framework; names in any case. */
export type HeadersLike =
  | Headers
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Why a delivery was refused.
 *
 * - `missing_header`: there is no timestamp or no signature.
 * - `malformed_timestamp`: the timestamp is not a whole number of seconds.
 * - `timestamp_outside_tolerance`: it is too old or too new: a replay, or a wrong clock.
 * - `malformed_signature`: the signature is not 64 lowercase hexadecimal digits.
 * - `signature_mismatch`: made with none of the secrets, or for another body.
 * - `malformed_body`: signed, but not a `session.chunks` envelope.
 */
export type WebhookVerificationReason =
  | 'missing_header'
  | 'malformed_timestamp'
  | 'timestamp_outside_tolerance'
  | 'malformed_signature'
  | 'signature_mismatch'
  | 'malformed_body';

/** A delivery that failed verification: respond with 401. Contains neither secret nor body. */
export class WebhookVerificationError extends Error {
  readonly reason: WebhookVerificationReason;

  constructor(reason: WebhookVerificationReason, message: string) {
    super(`${reason}: ${message}`);
    this.name = 'WebhookVerificationError';
    this.reason = reason;
  }
}

export interface VerifyOptions {
  /** How far the timestamp can be from the clock, in seconds, either way. Default: 300. */
  toleranceSeconds?: number | undefined;
  /** The clock. Default: the system's. */
  now?: (() => Date) | undefined;
}

/**
 * Verifies a delivery and returns its envelope.
 *
 * @param rawBody the raw bytes of the body (or their text, decoded as UTF-8 and otherwise unchanged)
 * @param headers all headers of the request
 * @param secrets the signing secret; during the grace period of a rotation, the previous and the new one
 * @throws WebhookVerificationError with its `reason`
 * @throws TypeError if there is no secret, or the body is not raw
 */
export async function verify(
  rawBody: string | Uint8Array,
  headers: HeadersLike,
  secrets: string | readonly string[],
  { toleranceSeconds = replayWindowSeconds, now: clock = now }: VerifyOptions = {},
): Promise<Envelope> {
  const keys = checkedSecrets(secrets);
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array)) throw new TypeError(rawBodyNeeded);
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody;

  const timestamp = headerValue(headers, deliveryHeaders.timestamp);
  const signature = headerValue(headers, deliveryHeaders.signature);
  if (timestamp === undefined) refuse('missing_header', `there is no ${deliveryHeaders.timestamp}`);
  if (signature === undefined) refuse('missing_header', `there is no ${deliveryHeaders.signature}`);
  if (!/^\d{1,15}$/.test(timestamp)) refuse('malformed_timestamp', 'the timestamp is not a whole number of seconds');
  const nowSeconds = Math.floor(clock().getTime() / 1000);
  if (!(Math.abs(nowSeconds - Number(timestamp)) <= toleranceSeconds)) {
    refuse('timestamp_outside_tolerance', `the timestamp is more than ${toleranceSeconds} s from this machine's clock`);
  }
  if (!/^[0-9a-f]{64}$/.test(signature)) refuse('malformed_signature', 'the signature is not lowercase hex of SHA-256');

  const prefix = new TextEncoder().encode(`${timestamp}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  // Every secret is tried, so that the time taken does not reveal which one matched.
  const matches = await Promise.all(keys.map((secret) => isSignedWith(secret, bytesOfHex(signature), signed)));
  // A secret from a file ends in a line break. If something else is wrong, that should not look like the cause.
  const isTrimmed = [secrets].flat().some((secret) => secret !== secret.trim());
  const note = isTrimmed ? ' (the white space around the secret was left out)' : '';
  if (!matches.includes(true)) refuse('signature_mismatch', `no secret made this signature of this body${note}`);
  const envelope = envelopeIn(body);
  if (!envelope) refuse('malformed_body', `the body is signed, but is not a session.chunks envelope${note}`);
  return envelope;
}

/** The error if a framework has already parsed the body. */
export const rawBodyNeeded =
  'The signature covers the raw bytes of the body, but it was parsed already: put the receiver before the JSON parser, or give this route a raw one (Express: express.raw({ type: "application/json" }); Fastify, in a plugin of its own: addContentTypeParser("application/json", (request, payload, done) => done(null)))';

/**
 * The secrets as a list, without white space around them, such as the line break at the end of a file. An empty one (from an unset
 * variable, for example) must never verify anything.
 */
export function checkedSecrets(secrets: string | readonly string[]): readonly string[] {
  const list: readonly unknown[] = typeof secrets === 'string' ? [secrets] : secrets;
  if (!Array.isArray(list)) throw new TypeError('secrets must be a signing secret or a list of them');
  const trimmed = list.map((secret) => (typeof secret === 'string' ? secret.trim() : ''));
  if (trimmed.length === 0 || trimmed.includes(''))
    throw new TypeError('secrets must hold at least one signing secret, and none that is empty');
  return trimmed;
}

/** The value of a header; undefined if it is missing, empty or repeated with different values. */
export function headerValue(headers: HeadersLike, name: string): string | undefined {
  const entries = entriesOf(headers);
  if (!entries) return (headers as { get(name: string): string | null | undefined }).get(name) || undefined;
  const values = entries.filter(([key]) => key.toLowerCase() === name).flatMap(([, value]) => value ?? []);
  return new Set(values).size === 1 ? values[0] || undefined : undefined;
}

type Entry = readonly [name: string, value: string | readonly string[] | undefined];

/** Undefined if there is only a `get`. The `Headers` of another implementation are no instance of the global class. */
function entriesOf(headers: HeadersLike): Entry[] | undefined {
  if (Symbol.iterator in headers) return [...(headers as Iterable<Entry>)];
  return typeof headers.get === 'function' ? undefined : Object.entries(headers as Record<string, Entry[1]>);
}

type Bytes = Uint8Array<ArrayBuffer>;

async function isSignedWith(secret: string, signature: Bytes, signed: Bytes): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['verify']);
  return await crypto.subtle.verify('HMAC', key, signature, signed);
}

function bytesOfHex(hex: string): Bytes {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function envelopeIn(body: Uint8Array): Envelope | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    const { event, chunks } = value as Partial<Envelope>;
    if (event === 'session.chunks' && Array.isArray(chunks)) return value as Envelope;
  } catch {
    // Reported without the parser's message, which can quote the body.
  }
  return undefined;
}

function refuse(reason: WebhookVerificationReason, message: string): never {
  throw new WebhookVerificationError(reason, message);
}
