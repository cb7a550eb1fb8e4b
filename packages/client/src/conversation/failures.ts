/** Which errors pass, and what a page shows of the others. */
import { SignalboxError } from '../errors.ts';
import type { SessionFailure } from './types.ts';

/** Whether the same call may succeed later: no response, a service that restarts, or too many requests. */
export function isTemporary(error: unknown): boolean {
  if (!(error instanceof SignalboxError)) return false;
  return error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500;
}

export function failureOf(of: SessionFailure['of'], error: unknown): SessionFailure {
  if (error instanceof SignalboxError) return { of, code: error.code, message: error.detail, cause: error };
  const cause = error instanceof Error ? error : new Error(String(error));
  return { of, code: 'unexpected_error', message: cause.message, cause };
}
