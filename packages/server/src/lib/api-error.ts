// The only error whose text callers of the API see. For any other error the caller gets `internal_error`, and the cause goes to the
// operator's log.
import { type ErrorCode, errorCodes, type FieldError } from '@signalbox/contract';

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly errors: readonly FieldError[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** The methods that the path takes. */
  readonly allow: readonly string[] | undefined;

  /** `detail` tells the caller what is wrong and what to send instead. */
  constructor(
    code: ErrorCode,
    detail: string,
    more: { errors?: FieldError[]; retryAfterSeconds?: number; allow?: readonly string[] } = {},
  ) {
    super(detail);
    this.code = code;
    this.status = errorCodes[code][0];
    this.errors = more.errors;
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.allow = more.allow;
  }
}

/** A 400 that names one field; `path` is empty for the request as a whole. */
export function invalidField(path: string, message: string): ApiError {
  const detail = path === '' ? `The request ${message}.` : `${path}: ${message}`;
  return new ApiError('invalid_request', detail, { errors: [{ path, message }] });
}

/** Input of a PUT that creates or replaces by name. */
export interface OnlyCreate {
  /** Whether to refuse it if there is one of this name. */
  onlyCreate?: boolean;
}

/** Throws 412 `precondition_failed`. */
export function requireNewName({ onlyCreate = false }: OnlyCreate, exists: boolean, path: string, what: string): void {
  if (!onlyCreate || !exists) return;
  const message = `is taken by another ${what}`;
  throw new ApiError('precondition_failed', `${path}: ${message}`, { errors: [{ path, message }] });
}

/** One error for an id that does not exist and for another organization's. */
export function notFound(what: string): ApiError {
  return new ApiError('not_found', `There is no such ${what}.`);
}
