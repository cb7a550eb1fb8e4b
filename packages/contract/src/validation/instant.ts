// Instants as callers write them. RFC 3339 also knows leap seconds, which a Date can't have, and years that four digits of UTC or
// PostgreSQL can't write. No value with the format `date-time` is accepted that is not one of these.
import Format, { IsDateTime } from 'typebox/format';

const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** What a `date-time` must be, for error messages. */
export const INSTANT =
  'an ISO 8601 time with its offset or Z, in the years 1 to 9999, such as 2026-01-31T09:30:00.000Z';

export function isInstant(text: string): boolean {
  const ms = Date.parse(text);
  return IsDateTime(text) && ms >= FIRST_MS && ms <= LAST_MS;
}

Format.Set('date-time', isInstant);
