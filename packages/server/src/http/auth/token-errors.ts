// What a session token reads of a refusal. The texts of some name what tokens don't see: a model, a budget, how much the organization has.
// Their code says enough for a page.
import type { ErrorCode } from '@signalbox/contract';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';

const textsForTokens: { readonly [Code in ErrorCode]?: string } = {
  budget_exceeded: 'No more model calls can be made at the moment.',
  budget_invalid: 'The session can make no model calls at the moment.',
  file_not_taken: 'The agent does not take this file.',
  key_budget_exceeded: 'No more model calls can be made today.',
  rate_limited: 'There are too many open sessions.',
  storage_full: 'There is no room for more files.',
};

/** Runs `fn`; if the caller has a session token, a refusal that it throws has only the text for tokens. */
export async function withTokenErrors<T>({ token }: Context, fn: () => T | Promise<T>): Promise<T> {
  try {
    return await fn();
  } catch (error) {
    throw token && error instanceof ApiError ? errorForToken(error) : error;
  }
}

function errorForToken(error: ApiError): ApiError {
  const text = textsForTokens[error.code];
  if (text === undefined) return error;
  const { code, errors, retryAfterSeconds } = error;
  // A token sends no budget, so no field of its request is wrong.
  const fields =
    code === 'file_not_taken' ? errors?.map(({ path }) => ({ path, message: 'is not taken by the agent' })) : undefined;
  return new ApiError(code, text, {
    ...(fields && { errors: fields }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}
