// Text that comes from models and tools, made fit to be stored: PostgreSQL has no NUL in text, and a lone surrogate has no
// UTF-8 form. What callers send is refused instead (http/request/validate.ts); nobody can be told to correct a model.

/** Deeper JSON has no use here, and recursion over it would cost the stack. */
export const MAX_JSON_DEPTH = 64;

export function storableText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

/** The same for every string and field name of a JSON value. */
export function storableJson(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(storableJson);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storableText(key), storableJson(inner)]));
}
