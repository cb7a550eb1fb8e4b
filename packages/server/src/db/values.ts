// Encodes parameters as text (bytea as binary), and parses results.
import { types } from 'pg';

/** A parameter as sent to the server: text, binary for bytea, or null. */
export type WireValue = string | Buffer | null;

/**
 * Encodes one parameter: a Date as ISO 8601 in UTC, a Uint8Array as bytea, an array as a PostgreSQL array, another object as JSON,
 * `undefined` as null. The caller has to stringify an array that is meant as jsonb.
 */
export function encodeValue(value: unknown): WireValue {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'object':
      if (Buffer.isBuffer(value)) return value;
      if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      if (value instanceof Date) return value.toISOString();
      if (Array.isArray(value)) return encodeArray(value);
      return JSON.stringify(value);
    default:
      throw new TypeError(`A ${typeof value} cannot be a statement parameter`);
  }
}

// PostgreSQL's number for the type, as a binary array names it.
const TEXT_OID = 25;

/**
 * Many or long texts as a binary text[] parameter. Without escaping here and scanning there, 500 texts of 450 bytes take half the time.
 * The statement must cast it: `${textArray(texts)}::text[]`.
 */
export function textArray(texts: readonly string[]): Buffer {
  const header = [1, 0, TEXT_OID, texts.length, 1]; // dimensions, no nulls, type, length and lower bound
  const array = Buffer.allocUnsafe(
    texts.reduce((bytes, text) => bytes + 4 + Buffer.byteLength(text), 4 * header.length),
  );
  let at = 0;
  for (const field of header) at = array.writeInt32BE(field, at);
  for (const text of texts) {
    const bytes = array.write(text, at + 4);
    at = array.writeInt32BE(bytes, at) + bytes;
  }
  return array;
}

function encodeArray(items: readonly unknown[]): string {
  return `{${items.map(encodeItem).join(',')}}`;
}

function encodeItem(item: unknown): string {
  if (Array.isArray(item)) return encodeArray(item);
  const value = encodeValue(item);
  if (value === null) return 'NULL';
  if (typeof value !== 'string') return `"\\\\x${value.toString('hex')}"`;
  if (typeof item === 'number' || typeof item === 'bigint') return value;
  return `"${value.replace(/["\\]/g, '\\$&')}"`;
}

type Parser = (text: string) => unknown;

const OID = { int8: 20, int8Array: 1016, textArray: 1009, date: 1082 };

function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`The bigint ${text} is too large for a number`);
  return value;
}

const parseTextArray = types.getTypeParser(OID.textArray, 'text') as (text: string) => (string | null)[];

const ownParsers = new Map<number, Parser>([
  [OID.int8, parseInt8],
  [OID.int8Array, (text) => parseTextArray(text).map((item) => (item === null ? null : parseInt8(item)))],
  // A calendar day has no time zone; a Date would add the machine's.
  [OID.date, (text) => text],
]);

/** The parser of a result column: bigint → number, timestamptz → Date, jsonb → parsed, bytea → Buffer, uuid → string. */
export function parserOf(oid: number): Parser {
  return ownParsers.get(oid) ?? (types.getTypeParser(oid, 'text') as Parser);
}
