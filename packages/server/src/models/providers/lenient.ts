// Values of other servers, in the type that is expected of them.

/** A number that may be a string; null if it is neither. */
export function numberIn(value: unknown): number | null {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : null;
}

/** A text that may be a number; null if it is neither. */
export function textIn(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : null;
}

export function recordIn(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** The values of a list, or the only one. */
export function listIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** The text of a value that may be in parts: `"a"`, `{ text: "a" }`, `[{ type: "text", text: "a" }]`. Null if there is none. */
export function joinedText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  const parts = listIn(value).map((part) => {
    const { text, content, summary } = recordIn(part);
    return typeof part === 'string' ? part : [text, content, summary].find((one) => typeof one === 'string');
  });
  return parts.some((part) => part !== undefined) ? parts.map((part) => part ?? '').join('') : null;
}

/** The JSON of a call's arguments, which may be the value itself. Null if there is none. */
export function argumentsIn(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : null;
}
