// Identifiers: a UUIDv7 in the database, `prefix_` and 26 characters of Crockford's base32 outside (the TypeID form).
// Both sort by time of creation.
import { createHash, randomFillSync } from 'node:crypto';
import type { IdPrefix } from '@signalbox/contract';
import { v7 } from 'uuid';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const VALUE_OF = new Map([...ALPHABET].map((character, value) => [character, value]));
// 128 bits are written as 130, so the first character holds three and each other one five.
const PATTERN = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

// Fetched for many ids at once: for one, that costs ten times as much as the rest of it.
const random = Buffer.alloc(4096);
let used = random.length;
let [lastMs, sequence] = [0, 0];

/** A new UUIDv7; later ones of this process sort after it. */
export function newUuid(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  const own = random.subarray(used, used + 16);
  used += own.length;
  const now = Date.now();
  // It begins in the lower half of its 32 bits, so it can't run over within a millisecond.
  [lastMs, sequence] = now > lastMs ? [now, own.readUInt32BE(6) >>> 1] : [lastMs, sequence + 1];
  return v7({ random: own, msecs: lastMs, seq: sequence });
}

/** The n-th UUID that belongs to another one, with its time: everyone who knows that one gets the same. `n` is below 4096. */
export function derivedUuid(uuid: string, n: number): string {
  const bytes = createHash('sha256').update(`${uuid} ${n}`).digest().subarray(0, 16);
  bytesOfUuid(uuid).copy(bytes, 0, 0, 6);
  // In the order of `n`.
  bytes.writeUInt16BE(0x7000 | n, 6);
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return uuidOfBytes(bytes);
}

/** No UUIDv7 created at this time or later sorts before it. */
export function firstUuidOf(time: Date): string {
  const hex = Math.max(0, time.getTime()).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** When a UUIDv7 was created. */
export function timeOfUuid(uuid: string): Date {
  return new Date(Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16));
}

/** `key`, `0198…` → `key_01k…`. */
export function formatId(prefix: IdPrefix, uuid: string): string {
  let text = '';
  let buffer = 0;
  let bits = 2; // two zero bits in front make 130
  for (let at = 0; at < 36; at += 1) {
    const digit = hexValue(uuid.charCodeAt(at));
    if (digit < 0) continue;
    buffer = ((buffer << 4) | digit) & 0xff_ff;
    bits += 4;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET[(buffer >> bits) & 31];
    }
  }
  return `${prefix}_${text}`;
}

/** The UUID of an identifier; undefined if it is not a valid identifier with this prefix. */
export function parseId(prefix: IdPrefix, id: string): string | undefined {
  const body = id.slice(prefix.length + 1);
  if (!id.startsWith(`${prefix}_`) || !PATTERN.test(body)) return undefined;
  let hex = '';
  let buffer = 0;
  let bits = -2; // skip the two leading zero bits
  for (const character of body) {
    buffer = ((buffer << 5) | VALUE_OF.get(character)!) & 0xff_ff;
    bits += 5;
    while (bits >= 4) {
      bits -= 4;
      hex += ((buffer >> bits) & 15).toString(16);
    }
  }
  return hyphenated(hex);
}

/** The UUIDs whose identifiers begin with this text; undefined if no identifier with this prefix does. */
export function idRange(prefix: IdPrefix, text: string): { from: string; to: string } | undefined {
  if (!text.startsWith(`${prefix}_`)) return undefined;
  const body = text.slice(prefix.length + 1).toLowerCase();
  const from = parseId(prefix, `${prefix}_${body.padEnd(26, '0')}`);
  const to = parseId(prefix, `${prefix}_${body === '' ? '7'.padEnd(26, 'z') : body.padEnd(26, 'z')}`);
  return from === undefined || to === undefined ? undefined : { from, to };
}

/** The UUID of an identifier that the contract's pattern has already accepted. */
export function uuidOf(prefix: IdPrefix, id: string): string {
  const uuid = parseId(prefix, id);
  if (uuid === undefined) throw new TypeError(`Not an identifier of ${prefix}`);
  return uuid;
}

/** The 16 bytes of a UUID. */
export function bytesOfUuid(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

export function uuidOfBytes(bytes: Buffer): string {
  return hyphenated(bytes.toString('hex'));
}

function hyphenated(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function hexValue(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  if (code >= 97 && code <= 102) return code - 87;
  return -1;
}
