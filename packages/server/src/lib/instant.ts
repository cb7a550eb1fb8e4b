// Instants as callers write them. RFC 3339 also knows leap seconds, and years that four digits of UTC or PostgreSQL can't write.
import { invalidField } from './api-error.ts';

const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** A `date-time` of the contract as a Date. Throws a 400 that names the field if PostgreSQL can't store it. */
export function instantOf(text: string, field: string): Date {
  const instant = new Date(text);
  if (instant.getTime() >= FIRST_MS && instant.getTime() <= LAST_MS) return instant;
  throw invalidField(field, 'must be a time in the years 1 to 9999, such as 2026-01-31T09:30:00.000Z');
}
