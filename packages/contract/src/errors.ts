/** The errors of the API. */
import { type Static, Type } from './schema.ts';

/** Every error code with its status and title. The title never varies; `detail` has the particulars. */
export const errorCodes = {
  invalid_request: [400, 'The request is not valid'],
  invalid_cursor: [400, 'The cursor is not valid'],
  missing_token: [401, 'No API key was sent'],
  malformed_token: [401, 'The API key is malformed'],
  invalid_token: [401, 'The API key is unknown'],
  token_expired: [401, 'The API key has expired'],
  token_rotated: [401, 'The API key was rotated'],
  token_revoked: [401, 'The API key was deleted'],
  session_token_invalid: [401, 'The session token is not valid'],
  session_token_revoked: [401, 'The session token was revoked'],
  session_token_expired: [401, 'The session token has expired'],
  signed_out: [401, 'Not signed in'],
  sign_in_failed: [401, 'The email or the password is wrong'],
  insufficient_permission: [403, 'The caller lacks the permission'],
  not_an_approver: [403, 'The caller may not decide this approval'],
  person_required: [403, 'Only a signed-in person can do this'],
  api_key_required: [403, 'Only an API key can do this'],
  sign_in_again: [403, 'This needs a recent sign-in'],
  csrf_refused: [403, 'The request did not come from the console'],
  origin_not_allowed: [403, 'The origin is not allowed'],
  ip_not_allowed: [403, 'This is not allowed from this address'],
  not_found: [404, 'Not found'],
  link_invalid: [404, 'The link is not valid'],
  method_not_allowed: [405, 'The path does not take this method'],
  request_timeout: [408, 'The request did not arrive in time'],
  conflict: [409, 'The state of the resource does not allow this'],
  email_taken: [409, 'An account with this email already exists'],
  last_owner: [409, 'An organization needs an owner'],
  subscription_exists: [409, 'The environment already has a webhook subscription'],
  environment_exists: [409, 'The environment already exists'],
  idempotency_conflict: [409, 'The idempotency key was used for another request'],
  idempotency_in_progress: [409, 'The first request with this idempotency key is still running'],
  session_ended: [409, 'The session has ended'],
  session_busy: [409, 'The session is busy'],
  turn_not_finished: [409, 'The turn has not finished'],
  turn_not_failed: [409, 'The last turn did not fail'],
  approval_already_resolved: [409, 'The approval is already resolved'],
  already_decided_by_you: [409, 'The caller has approved already, and another approver is needed'],
  turn_lost: [409, 'The turn no longer belongs to this worker'],
  agent_archived: [409, 'The agent is archived'],
  storage_full: [409, 'The storage limit for files is reached'],
  precondition_failed: [412, 'The condition of the request is not met'],
  payload_too_large: [413, 'The request body is too large'],
  uri_too_long: [414, 'The URL is too long'],
  unsupported_media_type: [415, 'The content type is not supported'],
  range_invalid: [416, 'The range is outside of the file'],
  file_invalid: [422, 'The file cannot be used'],
  file_not_taken: [422, 'The model of the agent does not take the file'],
  url_not_allowed: [422, 'The URL is not allowed'],
  budget_invalid: [422, 'The budget is not valid'],
  tool_unsupported: [422, 'The model can’t have this tool'],
  rate_limited: [429, 'Too many requests'],
  queue_full: [429, 'Too many messages wait for their turns'],
  key_budget_exceeded: [429, 'The budget of the key is used up'],
  budget_exceeded: [429, 'A budget of the organization is used up'],
  headers_too_large: [431, 'The headers are too large'],
  internal_error: [500, 'Internal error'],
  unavailable: [503, 'The service is not available'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

/** One of the codes above; programs branch on it, people read `detail`. */
export type ErrorCode = keyof typeof errorCodes;

/** One invalid field: its path (`tools[0].name`), and what is expected. */
export const FieldError = Type.Object({ path: Type.String(), message: Type.String() }, { title: 'FieldError' });
export type FieldError = Static<typeof FieldError>;

/** The body of every error: RFC 9457 with `code`, `requestId` and, for a 400, the invalid fields. */
export const Problem = Type.Object(
  {
    type: Type.String({ description: 'URL of an explanation of the code, relative to the service.' }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.Unsafe<ErrorCode>({ type: 'string', title: 'ErrorCode', enum: Object.keys(errorCodes) }),
    detail: Type.String(),
    requestId: Type.String(),
    errors: Type.Optional(Type.Array(FieldError)),
  },
  { title: 'Problem' },
);
export type Problem = Static<typeof Problem>;
