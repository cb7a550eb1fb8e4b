// The failures of an exchange with a provider, with messages that may be shown.
//
// Every provider has errors of its own, and they may quote the prompt. provider-error.ts reads them, failure-meaning.ts says whose fault
// they are; shown are only the status, what is clearly a code, and the path of the part of the request that is refused.
import { InvalidResponseDataError } from '@ai-sdk/provider';
import { EgressError } from '../../egress/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { ModelFailure, type ModelFailureCode } from '../model/model.ts';
import { errorInBody, type ProviderError } from '../model/provider-error.ts';
import type { ProviderKey } from '../model/provider-key.ts';
import { refusedParameterIn } from '../model/refused-parameters.ts';
import { meaningOf } from './failure-meaning.ts';
import type { RefusedMedia } from './refused-file.ts';
import { retryAfterOf } from './retry-after.ts';
import { shownParam } from './shown-param.ts';

/** An error's code is near the beginning of the body. */
const ERROR_MAX_BYTES = 64 * 1024;

/** Matches what providers put into `code`, `type` and `status`. Anything else could be a sentence that quotes the prompt. */
const ERROR_CODE = /^[A-Za-z0-9_.-]{1,64}$/;

/** DeepSeek, Kimi, and servers that run their models. */
const WANTS_REASONING =
  /missing ['"`]?reasoning_content|reasoning_content\b.{0,80}(must be|should be provided|is missing|required|cannot be (empty|null))/;

/** The request that was sent. No failure contains any part of it. */
export interface Sent {
  readonly key: ProviderKey | undefined;
  /** Undefined if it was too long to keep: then no error code is shown, which could be a part of it. */
  readonly body: string | undefined;
  /** The kinds of its files. */
  readonly media?: ReadonlySet<RefusedMedia> | undefined;
}

/** `error`: what the provider says. It may quote the prompt, so it is for look-ups only. */
export interface Refused {
  readonly failure: ModelFailure;
  readonly error: ProviderError | undefined;
}

/** The provider responded with a status other than 2xx. */
export async function refusalOf(response: Response, sent: Sent, clock: Pick<Clock, 'now'>): Promise<Refused> {
  const { status, headers } = response;
  const error = withType(errorInBody((await firstBytes(response, ERROR_MAX_BYTES)).trim()), headers);
  const redirect = status >= 300 && status < 400 ? ', a redirect, which is not followed' : '';
  const failure = failureOf(error, sent, headers, clock, {
    status,
    responded: `The model’s provider responded with HTTP ${status}${redirect}`,
    key: `HTTP ${status}${redirect}`,
  });
  return { failure, error };
}

/** An error that arrived with status 200: as an event of the stream, or instead of it. Some servers put a status into it. */
export function errorAfterOk(
  error: ProviderError,
  sent: Sent,
  headers: Headers,
  clock: Pick<Clock, 'now'>,
): ModelFailure {
  const { status } = error;
  const named = status === undefined ? '' : ` of status ${status}`;
  return failureOf(error, sent, headers, clock, {
    status,
    responded: `The model ended its response with an error${named}`,
    key: `an error in its response${named}`,
  });
}

function failureOf(
  error: ProviderError | undefined,
  sent: Sent,
  headers: Headers,
  clock: Pick<Clock, 'now'>,
  { status, responded, key }: { status: number | undefined; responded: string; key: string },
): ModelFailure {
  const { code, why, ...meaning } = meaningOf(status, error, sent.media);
  const param = shownParam(error?.params ?? [], (word) => isInRequest(word, sent));
  const said = [codeOf(error, sent), param].filter((word) => word !== undefined);
  const shown = said.length === 0 ? '' : ` (${said.join(', ')})`;
  if (code === 'model_key_rejected') return keyFailure(key + shown, sent, status);
  return new ModelFailure(code, `${responded}${shown}${why === undefined ? '' : `: ${why}`}`, {
    ...meaning,
    httpStatus: status,
    param,
    refusedParameter: code === 'model_rejected' ? refusedParameterIn(error) : undefined,
    wantsReasoning: code === 'model_rejected' && WANTS_REASONING.test(error?.sentence ?? ''),
    retryAfterMs: meaning.retryable ? retryAfterOf(headers, error, code === 'model_rate_limited', clock) : undefined,
  });
}

/** Classifies a thrown error. `responded`: the provider had begun its response, so that is at fault, and a retry may succeed. */
export function toModelFailure(error: unknown, responded: boolean): ModelFailure {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    if (at instanceof ModelFailure) return at;
    if (at instanceof EgressError) return egressFailure(at);
  }
  // If it has no data, the stream ended before the response did.
  if (InvalidResponseDataError.isInstance(error) && error.data === undefined) return streamAborted();
  if (responded) {
    return new ModelFailure('model_protocol', 'The model’s response is not in its provider’s format', {
      retryable: true,
    });
  }
  // An error of our own code or the SDK's: only its class is safe to show.
  const kind = error instanceof Error && /^\w{1,64}$/.test(error.name) ? ` (${error.name})` : '';
  return new ModelFailure('model_protocol', `The request to the model failed${kind}`, { retryable: false });
}

export function streamAborted(): ModelFailure {
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

/** Bedrock names the kind of its error in a header: `ThrottlingException:http://…`. */
function withType(error: ProviderError | undefined, headers: Headers): ProviderError | undefined {
  const [type] = headers.get('x-amzn-errortype')?.split(':') ?? [];
  if (type === undefined || !error) return error;
  return { ...error, words: [...error.words, type.toLowerCase()], codes: [...error.codes, type] };
}

/** The error's own code, unless it is part of the request, which some servers quote. */
function codeOf(error: ProviderError | undefined, sent: Sent): string | undefined {
  return error?.codes.find(
    (word) => ERROR_CODE.test(word) && !/^(\d+|none|null)$/i.test(word) && !isInRequest(word, sent),
  );
}

function isInRequest(word: string, { key, body }: Sent): boolean {
  if (body === undefined || body.includes(word)) return true;
  return key !== undefined && (key.value.includes(word) || word.includes(key.value));
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
