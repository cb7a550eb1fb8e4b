// Instants that are computed from those of callers, which can lie outside what PostgreSQL stores.
import { INSTANT, isInstant } from '@signalbox/contract/check';
import { invalidField } from './api-error.ts';

/** A `date-time` of the contract as a Date. Throws a 400 that names the field if it can't be stored. */
export function instantOf(text: string, field: string): Date {
  if (isInstant(text)) return new Date(text);
  throw invalidField(field, `must be ${INSTANT}`);
}
