// Classifies the failures of an exchange with a provider, with messages that may be shown.
//
// Every provider has errors of its own: responses with a status and a body, events within a stream, and what its SDK turns either
// into. All of them may quote the prompt, so only statuses and strings that are clearly error codes are taken from them.
import { APICallError, InvalidResponseDataError, JSONParseError, TypeValidationError } from '@ai-sdk/provider';
import { EgressError } from '../../egress/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { parseJson } from '../../lib/json.ts';
import { isContextTooLong } from './context-too-long.ts';
import { ModelFailure, type ModelFailureCode } from './model.ts';
import type { ProviderKey } from './provider-key.ts';

/** An error's code is near the beginning of the body. */
const ERROR_MAX_BYTES = 64 * 1024;

/** Matches what providers put into `code`, `type` and `status`. Anything else could be a sentence that quotes the prompt. */
const ERROR_CODE = /^[A-Za-z0-9_.-]{1,64}$/;

/** The longest wait that we accept from a provider. More is a mistake. */
const RETRY_AFTER_MAX_MS = 86_400_000;

/** The request that was sent. No failure contains any part of it. */
export interface Sent {
  readonly key: ProviderKey | undefined;
  /** Undefined if it was too long to keep: then no error code is shown, which could be a part of it. */
  readonly body: string | undefined;
}

/** The provider responded with a status other than 2xx. */
export async function refusalOf(response: Response, sent: Sent, clock: Clock): Promise<ModelFailure> {
  const { status } = response;
  const error = errorIn(parseJson(await firstBytes(response, ERROR_MAX_BYTES)));
  const [code, retryable] = meaningOfStatus(status, error);
  const redirect = status >= 300 && status < 400 ? ', a redirect, which is not followed' : '';
  const retryAfterMs = retryable ? retryAfterOf(response.headers, error, clock) : undefined;
  const responded = `HTTP ${status}${redirect}${codeOf(error, sent)}`;
  if (code === 'model_key_rejected') return keyFailure(responded, sent, status);
  return new ModelFailure(code, `The model’s provider responded with ${responded}`, {
    retryable,
    httpStatus: status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/**
 * Classifies a thrown error, or the error of a stream's `error` part. `responded`: the provider had begun its response, so the
 * response is at fault, and a retry may succeed.
 */
export function toModelFailure(error: unknown, sent: Sent, responded: boolean): ModelFailure {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    if (at instanceof ModelFailure) return at;
    if (at instanceof EgressError) return egressFailure(at);
  }
  // If it has no data, the stream ended before the response did.
  if (InvalidResponseDataError.isInstance(error) && error.data === undefined) return brokenOff();
  const streamed = errorIn(frameOf(error));
  if (streamed !== undefined) return streamedFailure(streamed, sent);
  if (responded || JSONParseError.isInstance(error) || TypeValidationError.isInstance(error)) {
    return new ModelFailure('model_protocol', 'The model’s response is not in its provider’s format', {
      retryable: true,
    });
  }
  // An error of our own code or the SDK's: only its class is safe to show.
  const kind = error instanceof Error && /^\w{1,64}$/.test(error.name) ? ` (${error.name})` : '';
  return new ModelFailure('model_protocol', `The request to the model failed${kind}`, { retryable: false });
}

export function brokenOff(): ModelFailure {
  return new ModelFailure('model_unavailable', 'The model’s stream was interrupted', { retryable: true });
}

function egressFailure({ kind, message }: EgressError): ModelFailure {
  const [code, retryable]: [ModelFailureCode, boolean] =
    kind === 'not_allowed'
      ? ['model_not_allowed', false]
      : kind === 'protocol'
        ? ['model_protocol', false]
        : kind === 'timeout' || kind === 'connect_timeout'
          ? ['model_timeout', true]
          : ['model_unavailable', true];
  return new ModelFailure(code, `The model could not be called: ${message}`, { retryable });
}

/** The provider refuses the key that was sent, or that none was sent. */
function keyFailure(responded: string, { key }: Sent, httpStatus: number | undefined): ModelFailure {
  const status = { retryable: false, ...(httpStatus !== undefined && { httpStatus }) };
  if (key)
    return new ModelFailure('model_key_rejected', `The model’s provider rejected ${key.label}: ${responded}`, status);
  const missing = `The model’s server requires a key (${responded}); name its secret in the agent’s model.apiKeySecret`;
  return new ModelFailure('model_key_missing', missing, status);
}

/** An error that arrived as an event of the stream, after status 200. Some servers put a status into it. */
function streamedFailure(error: unknown, sent: Sent): ModelFailure {
  const status = isRecord(error) ? [error.code, error.status].map(Number).find(isErrorStatus) : undefined;
  const [code, retryable] = status === undefined ? meaningOfWords(error) : meaningOfStatus(status, error);
  if (code === 'model_key_rejected') return keyFailure(`an error in its stream${codeOf(error, sent)}`, sent, status);
  return new ModelFailure(code, `The model ended its response with an error${codeOf(error, sent)}`, {
    retryable,
    ...(status !== undefined && { httpStatus: status }),
  });
}

function meaningOfStatus(status: number, error: unknown): [ModelFailureCode, retryable: boolean] {
  const words = wordsOf(error);
  if (status === 429) return ['model_rate_limited', !hasNoMoney(words)];
  if (status === 408) return ['model_timeout', true];
  if (status >= 500) return ['model_unavailable', true];
  if (isContextTooLong(status, words, messageOf(error))) return ['model_context_too_long', false];
  return isAboutKey(status, words) ? ['model_key_rejected', false] : ['model_rejected', false];
}

/** A 403 can be about a country or a policy, and Google reports a wrong key with 400. */
function isAboutKey(status: number, words: readonly string[]): boolean {
  return status === 401 || words.some((word) => KEY_WORD.test(word) && (status === 403 || word.includes('api_key')));
}

const KEY_WORD = /api_key|authentication|unauthenticated|permission/;

/** The codes of OpenAI, Anthropic and Google's RPC statuses. */
function meaningOfWords(error: unknown): [ModelFailureCode, retryable: boolean] {
  const words = wordsOf(error);
  const says = (pattern: RegExp) => words.some((word) => pattern.test(word));
  if (says(/rate_limit|insufficient_quota|resource_exhausted/)) return ['model_rate_limited', !hasNoMoney(words)];
  if (says(/deadline_exceeded|timeout/)) return ['model_timeout', true];
  if (isContextTooLong(undefined, words, messageOf(error))) return ['model_context_too_long', false];
  if (says(KEY_WORD)) return ['model_key_rejected', false];
  if (says(/invalid_(request|argument|prompt)|failed_precondition|not_found|billing/)) {
    return ['model_rejected', false];
  }
  return ['model_unavailable', true];
}

/** Codes for an exhausted balance (OpenAI's, and those of servers that use its format). Waiting does not help. */
function hasNoMoney(words: readonly string[]): boolean {
  return words.some((word) => /^(insufficient_quota|billing_|exceeded_current_quota)/.test(word));
}

/** The event from which an SDK created the error, if there is one. */
function frameOf(error: unknown): unknown {
  if (APICallError.isInstance(error)) return error.data ?? parseJson(error.responseBody ?? '');
  if (TypeValidationError.isInstance(error))
    return isRecord(error.value) && 'error' in error.value ? error.value : null;
  if (error instanceof Error) return null;
  // An `error` part that is not an Error is the provider's own event.
  return isRecord(error) && 'data' in error ? error.data : { error };
}

/** The error object of a provider: `{ error }`, `{ response: { error } }`, or the whole value. Undefined if there is none. */
function errorIn(body: unknown): unknown {
  if (!isRecord(body)) return undefined;
  if (isRecord(body.response) && isRecord(body.response.error)) return body.response.error;
  if (body.error !== undefined && body.error !== null) return body.error;
  return typeof body.message === 'string' || typeof body.code === 'string' ? body : undefined;
}

/** Lower case: RPC statuses are in capitals. Google gives its reasons in `details`. */
function wordsOf(error: unknown): string[] {
  if (!isRecord(error)) return [];
  const details = Array.isArray(error.details) ? error.details.slice(0, 10) : [];
  const reasons = details.map((detail: unknown) => (isRecord(detail) ? detail.reason : undefined));
  return [error.code, error.type, error.status, ...reasons]
    .filter((word) => typeof word === 'string')
    .map((word) => word.toLowerCase());
}

/** To be searched, never shown: it may quote the prompt. */
function messageOf(error: unknown): unknown {
  return isRecord(error) ? error.message : undefined;
}

/** The error's own code, in brackets, unless it is part of the request, which some servers quote. */
function codeOf(error: unknown, { key, body }: Sent): string {
  if (!isRecord(error) || body === undefined) return '';
  const isCode = (word: unknown): word is string =>
    typeof word === 'string' &&
    ERROR_CODE.test(word) &&
    !/^\d+$/.test(word) &&
    !body.includes(word) &&
    (key === undefined || !(key.value.includes(word) || word.includes(key.value)));
  const code = [error.code, error.status, error.type].find(isCode);
  return code === undefined ? '' : ` (${code})`;
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status < 600;
}

/** In ms; undefined if the provider sends none, or a value that makes no sense. */
function retryAfterOf(headers: Headers, error: unknown, clock: Clock): number | undefined {
  const ms = retryAfterIn(headers, clock) ?? retryDelayIn(error);
  return ms === undefined ? undefined : Math.min(ms, RETRY_AFTER_MAX_MS);
}

function retryAfterIn(headers: Headers, clock: Clock): number | undefined {
  const inMs = headers.get('retry-after-ms');
  if (inMs !== null && /^\d{1,12}(\.\d+)?$/.test(inMs)) return Math.ceil(Number(inMs));
  const after = headers.get('retry-after');
  if (after === null) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(after)) return Math.ceil(Number(after) * 1000);
  const at = Date.parse(after);
  return Number.isNaN(at) ? undefined : Math.max(0, at - clock.now().getTime());
}

/** Google sends it in the body: `details: [{ "@type": "….RetryInfo", retryDelay: "34s" }]`. */
function retryDelayIn(error: unknown): number | undefined {
  if (!isRecord(error) || !Array.isArray(error.details)) return undefined;
  for (const detail of error.details) {
    const [, seconds] = /^(\d{1,9}(?:\.\d+)?)s$/.exec(isRecord(detail) ? String(detail.retryDelay) : '') ?? [];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1000);
  }
  return undefined;
}

async function firstBytes(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    // Leaving the loop ends the response and closes its connection.
    if (bytes >= maxBytes) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, maxBytes);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
