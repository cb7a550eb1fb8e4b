/**
 * Canonical JSON (RFC 8785): one text for one value, whoever writes it. Names are sorted by UTF-16 code units; numbers and
 * strings are written as ECMAScript's own `JSON.stringify` does, which is what the RFC took over.
 *
 * @param value as JSON.parse gives it
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = value as Record<string, unknown>;
  const names = Object.keys(members).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`).join(',')}}`;
}
