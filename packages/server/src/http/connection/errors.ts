// Errors as the caller sees them: `application/problem+json` with a stable `code`. An error that is not an ApiError is a fault of the
// service: the caller gets a bare `internal_error` or `unavailable`, and the cause is logged.
import { errorCodes, type Problem } from '@signalbox/contract';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { DatabaseUnavailable } from '../../db/db.ts';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';

const MIB = 1024 * 1024;

/** The body of a refusal. */
export function problemOf(error: ApiError, requestId: string): Problem {
  return {
    type: `/docs#${error.code}`,
    title: errorCodes[error.code][1],
    status: error.status,
    code: error.code,
    detail: error.message,
    requestId,
    ...(error.errors && { errors: [...error.errors] }),
  };
}

/** Responds with a refusal. */
export function sendProblem(reply: FastifyReply, error: ApiError, requestId: string): FastifyReply {
  if (error.status === 401) reply.header('WWW-Authenticate', 'Bearer');
  if (error.allow) reply.header('Allow', error.allow.join(', '));
  if (error.retryAfterSeconds !== undefined) reply.header('Retry-After', error.retryAfterSeconds);
  return reply
    .code(error.status)
    .type('application/problem+json; charset=utf-8')
    .send(JSON.stringify(problemOf(error, requestId)));
}

/** For Fastify's `setErrorHandler` and `frameworkErrors`. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = asApiError(error, request);
  // Fastify closes the connection after a body that it can't read; here the rest is discarded instead (body.ts).
  reply.removeHeader('connection');
  // What the client does not wait for any more was given up.
  const isGivenUp = error === OVER && reply.raw.destroyed;
  // A deliberate refusal is already in the request's own log line.
  if (known.status >= 500 && known !== error && !isGivenUp) {
    request.log.error(
      { err: error, requestId: request.id },
      known.code === 'unavailable' ? 'unavailable' : 'request failed',
    );
  }
  return sendProblem(reply, known, request.id);
}

function sizeText(bytes: number): string {
  return bytes < MIB ? `${bytes / 1024} KiB` : `${bytes / MIB} MiB`;
}

function asApiError(error: unknown, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DatabaseUnavailable) {
    return new ApiError('unavailable', 'The database is not available. Retry in a moment.', { retryAfterSeconds: 1 });
  }
  const { code, statusCode } = error as Partial<FastifyError>;
  switch (code) {
    // PostgreSQL's own code for a statement that took longer than it may.
    case '57014':
      return new ApiError('unavailable', 'The database took too long. Retry in a moment.', { retryAfterSeconds: 1 });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError('unsupported_media_type', 'Send the body as `Content-Type: application/json`.');
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError(
        'payload_too_large',
        `The body of this request can have at most ${sizeText(request.routeOptions.bodyLimit)}.`,
      );
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ApiError('not_found', 'Not found. Check that the ID is complete.');
    case 'FST_STATIC_FORBIDDEN_PATH':
      return new ApiError('not_found', 'Not found.');
    case 'FST_ERR_BAD_URL':
      return new ApiError('invalid_request', 'The path of the URL is not well-formed.');
    default:
      if (statusCode === 400) return new ApiError('invalid_request', 'The request is not well-formed.');
      return new ApiError(
        'internal_error',
        'The service failed unexpectedly. Its log has the cause, with this requestId.',
      );
  }
}
