// Cleans text from models and tools so that it can be stored: PostgreSQL's text can't contain NUL, and a lone surrogate has no UTF-8
// form. Such text in a request is refused instead (http/body/json-value.ts), because a caller can correct it and a model can't.

/** Deeper JSON has no use here, and recursion over it could overflow the stack. */
export const MAX_JSON_DEPTH = 64;

export function storableText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

// No language has as many on one letter.
const MORE_MARKS = /(\p{M}{8})\p{M}+/gu;

/**
 * A text that can be normalized in time that is proportional to its length: marks after the eighth in a row are left out. Sorting a row of
 * marks takes quadratic time, which a message of 200,000 of them would turn into half a minute.
 */
export function normalizable(text: string): string {
  return text.toWellFormed().replace(MORE_MARKS, '$1');
}

/** `storableText` for every string and field name of a JSON value. */
export function storableJson(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(storableJson);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storableText(key), storableJson(inner)]));
}
