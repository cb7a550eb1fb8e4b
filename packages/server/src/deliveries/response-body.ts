// The body of a receiver's response as it is stored and shown.
import { storableText } from '../lib/text.ts';
import { createRedaction } from '../tools/tool/redact.ts';

const STORED_BYTES = 4 * 1024;
// Shorter words of a header, such as `Basic`, are no secrets.
const MIN_SECRET_LENGTH = 8;
// A header with more is no key.
const MAX_WORDS = 4;

/** Null if it is empty. Without the values of `headers`, which some receivers repeat. */
export function storableBody(body: Buffer, headers: Readonly<Record<string, string>> = {}): string | null {
  if (body.length === 0) return null;
  // All in one pass: a value may be a part of what another one is replaced by, which would grow with each.
  const redact = createRedaction({ ...headers, ...wordsOf(headers) });
  return storableText(Buffer.from(redact(body.toString())).subarray(0, STORED_BYTES).toString());
}

/** A receiver may repeat a key without `Bearer`. */
function wordsOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const words = Object.entries(headers).flatMap(([name, value]) =>
    value.split(' ', MAX_WORDS).map((word, index) => [`${name}, word ${index + 1}`, word] as const),
  );
  return Object.fromEntries(words.filter(([, word]) => word.length >= MIN_SECRET_LENGTH));
}
