/**
 * Canonical JSON (RFC 8785): the same text for the same value on every platform. Names are sorted by UTF-16 code units; numbers
 * and strings are written as by ECMAScript's `JSON.stringify`, which the RFC adopts.
 *
 * @param value as returned by JSON.parse
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = value as Record<string, unknown>;
  const names = Object.keys(members).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`).join(',')}}`;
}
