// The secret of an API key, and the tokens of links that let people in:
//
//   sbk_ ‖ organization (22) ‖ key (22) ‖ random (33) ‖ checksum (6)        all base62
//
// `sbi_` of an invitation, `sbr_` of a password reset and `sbs_` of a share link have the same form. A secret names its organization and key, so that the
// look-up needs no global table. 33 random characters are 196 bits. The checksum (CRC-32 of all before it) recognizes a mistyped key
// without a look-up. Only a hash is stored; with 196 random bits a slow hash would add nothing.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** What a secret opens. */
export type SecretKind = 'sbk' | 'sbi' | 'sbr' | 'sbs';

const PREFIX_LENGTH = 4;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const UUID_LENGTH = 22;
const RANDOM_LENGTH = 33;
const CHECKSUM_LENGTH = 6;
const PATTERN = new RegExp(`^sb[kirs]_[0-9A-Za-z]{${2 * UUID_LENGTH + RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);
const PREVIEW_TAIL = 4;

/** Characters of a complete secret. */
export const SECRET_LENGTH = PREFIX_LENGTH + 2 * UUID_LENGTH + RANDOM_LENGTH + CHECKSUM_LENGTH;

/** A secret that names its key (or invitation, or reset). It proves nothing until its hash has been compared. */
export interface ParsedSecret {
  organizationId: string;
  keyId: string;
  hash: Buffer;
}

/** A new secret for a key; for an invitation or a reset, with its kind. */
export function newSecret(organizationId: string, keyId: string, kind: SecretKind = 'sbk'): string {
  const body = `${kind}_${encodeUuid(organizationId)}${encodeUuid(keyId)}${randomDigits(RANDOM_LENGTH)}`;
  return body + checksum(body);
}

/** Undefined if the text can't be a secret of this service, by its form or its checksum. */
export function parseSecret(secret: string, kind: SecretKind = 'sbk'): ParsedSecret | undefined {
  if (!PATTERN.test(secret) || !secret.startsWith(`${kind}_`)) return undefined;
  if (checksum(secret.slice(0, -CHECKSUM_LENGTH)) !== secret.slice(-CHECKSUM_LENGTH)) return undefined;
  const organizationId = decodeUuid(secret.slice(PREFIX_LENGTH, PREFIX_LENGTH + UUID_LENGTH));
  const keyId = decodeUuid(secret.slice(PREFIX_LENGTH + UUID_LENGTH, PREFIX_LENGTH + 2 * UUID_LENGTH));
  if (!organizationId || !keyId) return undefined;
  return { organizationId, keyId, hash: hashSecret(secret) };
}

export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Whether the hashes are the same, in constant time. */
export function sameHash(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** `sbk_…abcd`: enough to distinguish keys. */
export function previewOf(secret: string): string {
  return `${secret.slice(0, PREFIX_LENGTH)}…${secret.slice(-PREVIEW_TAIL)}`;
}

function checksum(body: string): string {
  return encodeNumber(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function encodeUuid(uuid: string): string {
  return encodeNumber(BigInt(`0x${uuid.replaceAll('-', '')}`), UUID_LENGTH);
}

function decodeUuid(text: string): string | undefined {
  let value = 0n;
  for (const digit of text) value = value * 62n + BigInt(DIGITS.indexOf(digit));
  if (value >> 128n) return undefined;
  const hex = value.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function encodeNumber(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text;
}

function randomDigits(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 in a byte: larger values would make some digits more likely.
      if (byte < 248 && text.length < length) text += DIGITS[byte % 62];
    }
  }
  return text;
}
