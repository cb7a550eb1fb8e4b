// The error codes that each route can return.
import { type ErrorCode, errorCodes, type Route, type SchemaObject } from '@signalbox/contract';

/** What a session token may get from a route that it reaches. Every other route is `not_found` for it. */
const ofTokens = [
  'session_token_invalid',
  'session_token_revoked',
  'session_token_expired',
  'origin_not_allowed',
  'not_found',
] as const;

/** What a key may get from every route that takes one. */
const ofKeys = ['malformed_token', 'token_expired', 'token_rotated', 'token_revoked', 'ip_not_allowed'] as const;

/** Every code that the route can return, in the order of the contract. */
export function codesOf(route: Route): ErrorCode[] {
  const can = new Set<ErrorCode>([
    'invalid_request',
    'missing_token',
    'invalid_token',
    ...(route.byOperator ? [] : ofKeys),
    'request_timeout',
    'uri_too_long',
    'headers_too_large',
    'rate_limited',
    'internal_error',
    'unavailable',
    ...(route.errors ?? []),
  ]);
  const takesCursor = [route.query, route.body].some((part) => (part as SchemaObject | undefined)?.properties?.cursor);
  if (takesCursor) can.add('invalid_cursor');
  if (route.scope !== 'any' || route.byOperator) can.add('insufficient_permission');
  if (route.byPerson) can.add('person_required');
  if (route.token) {
    for (const code of ofTokens) can.add(code);
  }
  if (route.params) can.add('not_found');
  // Also for routes without a body: it is read before it is refused.
  if (route.method !== 'GET') can.add('payload_too_large').add('unsupported_media_type');
  if (route.canOnlyCreate) can.add('precondition_failed');
  if (route.method === 'POST') can.add('idempotency_conflict').add('idempotency_in_progress');
  return (Object.keys(errorCodes) as ErrorCode[]).filter((code) => can.has(code));
}
