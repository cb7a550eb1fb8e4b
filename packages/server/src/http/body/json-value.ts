// What JSON can say and the service would not keep as it was sent. A caller can correct it, so it is refused with the path of the field;
// text of models and tools is cleaned instead (lib/text.ts).
import type { FieldError } from '@signalbox/contract';
import { ApiError } from '../../lib/api-error.ts';
import { MAX_JSON_DEPTH } from '../../lib/text.ts';
import { repeatedField } from './repeated-field.ts';

/** For the value that the engine's parser read from this text. */
export function requireFaithful(text: string, bytes: Uint8Array, value: unknown): void {
  const seen = { fields: 0 };
  refuse(unfaithful(value, seen, 0));
  if (seen.fields !== countFields(bytes)) refuse(repeatedField(text));
}

/** `requireFaithful` for a value that was not read from JSON. */
export function requireFaithfulValue(value: unknown): void {
  refuse(unfaithful(value, { fields: 0 }, 0));
}

export function isFaithful(value: unknown): boolean {
  return unfaithful(value, { fields: 0 }, 0) === undefined;
}

function refuse(wrong: FieldError | undefined): void {
  if (wrong) throw new ApiError('invalid_request', `${wrong.path || 'body'}: ${wrong.message}`, { errors: [wrong] });
}

/** Counts the fields of all objects. The path is built only for the value that is wrong: a body may have hundreds of thousands. */
function unfaithful(value: unknown, seen: { fields: number }, depth: number): FieldError | undefined {
  if (typeof value === 'string') {
    // PostgreSQL can't store NUL, and a lone surrogate has no UTF-8 form: both would be lost, or fail later.
    if (value.includes('\0')) return { path: '', message: 'must not contain the NUL character' };
    if (!value.isWellFormed()) return { path: '', message: 'must be well-formed Unicode (it has a lone surrogate)' };
    return undefined;
  }
  // The parser reads 1e400 as Infinity, which no JSON can say.
  if (typeof value === 'number' && !Number.isFinite(value))
    return { path: '', message: 'must be a number of at most 1.8e308, or a string of its digits' };
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth >= MAX_JSON_DEPTH) return { path: '', message: `must not be nested deeper than ${MAX_JSON_DEPTH} levels` };
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const wrong = unfaithful(value[index], seen, depth + 1);
      if (wrong) return { ...wrong, path: joinPath(`[${index}]`, wrong.path) };
    }
    return undefined;
  }
  const keys = Object.keys(value);
  seen.fields += keys.length;
  for (const key of keys) {
    if (key.includes('\0') || !key.isWellFormed())
      return { path: '', message: 'has a field whose name is not valid text' };
    const wrong = unfaithful((value as Record<string, unknown>)[key], seen, depth + 1);
    if (wrong) return { ...wrong, path: joinPath(key, wrong.path) };
  }
  return undefined;
}

function joinPath(step: string, inner: string): string {
  return inner === '' || inner.startsWith('[') ? step + inner : `${step}.${inner}`;
}

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];

/** The number of colons outside strings, which valid JSON has one of for each field. Takes less time than parsing it. */
function countFields(bytes: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === COLON) count += 1;
    if (byte !== QUOTE) continue;
    for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at += 1) if (bytes[at] === BACKSLASH) at += 1;
  }
  return count;
}
