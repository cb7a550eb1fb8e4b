// The condition of a PUT that creates or replaces by name (RFC 9110, 13.1.2).
import type { IncomingHttpHeaders } from 'node:http';
import type { Route } from '@signalbox/contract';
import { invalidField } from '../../lib/api-error.ts';

/** With `onlyCreate` if the request asks for that. Throws 400 for a condition that is not supported, because ignoring it could replace. */
export function withPrecondition(
  { canOnlyCreate }: Route,
  input: Record<string, unknown>,
  headers: IncomingHttpHeaders,
): Record<string, unknown> {
  const condition = headers['if-none-match'];
  if (!canOnlyCreate || condition === undefined) return input;
  if (condition.trim() !== '*') throw invalidField('If-None-Match', 'must be `*`, which only creates');
  return { ...input, onlyCreate: true };
}
