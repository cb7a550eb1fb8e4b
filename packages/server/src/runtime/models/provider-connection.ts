// One exchange with a provider's server, and what it means when it ends badly.
//
// A provider's SDK is handed `fetch` and `signal` from here. What goes wrong on the wire is judged here, while status and
// headers are at hand, rather than read back out of the SDK's errors: those hold the whole prompt, so they are looked
// through for what was thrown here, and are never kept, logged or passed on.
import { InvalidResponseDataError, JSONParseError, TypeValidationError } from '@ai-sdk/provider';
import type { Egress } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { parseJson } from '../json.ts';
import { ModelFailure, type ModelFailureCode } from './model.ts';

/** Providers that think for longer send something meanwhile, if only a comment. */
const SILENCE_MAX_MS = 60_000;

/** Over a hundred thousand tokens, at the few hundred bytes that servers spend on each. More is an answer without an end. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

/** An error's code stands near its beginning. */
const ERROR_MAX_BYTES = 64 * 1024;

/** What providers put into `code` and `type`. Anything else could be a sentence that quotes the prompt. */
const ERROR_CODE = /^[a-z0-9_.-]{1,64}$/;

export interface ProviderConnection {
  /** For the SDK. Whatever it rejects with, `failure` is the word on it. */
  readonly fetch: typeof globalThis.fetch;
  /** Aborted with the caller's signal, by a provider that falls silent, and by `close`. */
  readonly signal: AbortSignal;
  /** Awaits what the provider is to send. Only meanwhile may it be silent for too long. */
  wait<T>(answer: PromiseLike<T>): Promise<T>;
  /** What a thrown error, or the one of a stream's `error` part, comes down to. */
  failureOf(error: unknown): ModelFailure;
  /** Ends the exchange, and with it the connection where an answer is still under way. */
  close(): void;
}

export function openConnection(
  { egress, clock }: { egress: Egress; clock: Clock },
  callerSignal: AbortSignal,
): ProviderConnection {
  const stop = new AbortController();
  const signal = AbortSignal.any([callerSignal, stop.signal]);
  let failure: ModelFailure | undefined;
  let waiting = false;
  let heardAt = clock.now().getTime();

  function heard(): void {
    heardAt = clock.now().getTime();
  }

  function fail(reason: ModelFailure): ModelFailure {
    failure ??= reason;
    return failure;
  }

  /** One timer for the whole exchange: bytes only set the time, since there can be thousands of them a second. */
  async function watch(): Promise<void> {
    for (let leftMs = SILENCE_MAX_MS; leftMs > 0; ) {
      await clock.sleep(leftMs, signal);
      // Nothing is read while the reader is busy, so nothing can be heard.
      if (!waiting) heard();
      leftMs = SILENCE_MAX_MS - (clock.now().getTime() - heardAt);
    }
    const seconds = SILENCE_MAX_MS / 1000;
    stop.abort(
      fail(new ModelFailure('model_timeout', `The model sent nothing for ${seconds} seconds`, { retryable: true })),
    );
  }
  watch().catch(() => {}); // The exchange ended first.

  async function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const response = await egress.fetch(input, { ...init, signal });
    heard();
    if (!response.ok) throw fail(await refusalOf(response, init, clock));
    const mediaType = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
    if (mediaType === 'text/html' || mediaType === 'application/json') {
      throw fail(
        new ModelFailure('model_protocol', `The model answered with ${mediaType} instead of an event stream`, {
          retryable: false,
        }),
      );
    }
    let bytes = 0;
    const body = response.body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          heard();
          bytes += chunk.byteLength;
          if (bytes > ANSWER_MAX_BYTES) {
            throw fail(
              new ModelFailure('model_protocol', `The answer is longer than ${ANSWER_MAX_BYTES} bytes`, {
                retryable: false,
              }),
            );
          }
          controller.enqueue(chunk);
        },
      }),
    );
    return new Response(body ?? null, { status: response.status, headers: response.headers });
  }

  return {
    fetch,
    signal,
    async wait(answer) {
      heard();
      waiting = true;
      try {
        return await answer;
      } finally {
        waiting = false;
      }
    },
    failureOf: (error) => failure ?? failureOf(error),
    close: () => stop.abort(),
  };
}

// What an error means

function failureOf(error: unknown): ModelFailure {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    if (at instanceof ModelFailure) return at;
    if (at instanceof EgressError) return egressFailure(at);
  }
  // The only one that providers hand on as a part: the stream ended, and the answer had not.
  if (InvalidResponseDataError.isInstance(error) && error.data === undefined) {
    return new ModelFailure('model_unavailable', 'The model’s stream broke off', { retryable: true });
  }
  if (TypeValidationError.isInstance(error) && isRecord(error.value) && 'error' in error.value) {
    return streamedFailure(error.value.error);
  }
  if (
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error) ||
    InvalidResponseDataError.isInstance(error)
  ) {
    return new ModelFailure('model_protocol', 'The model’s answer is not in its provider’s format', {
      retryable: true,
    });
  }
  if (error instanceof Error) {
    // Of our own making or the SDK's: its class is all that can be told of it.
    const kind = /^\w{1,64}$/.test(error.name) ? ` (${error.name})` : '';
    return new ModelFailure('model_protocol', `The exchange with the model failed${kind}`, { retryable: false });
  }
  return streamedFailure(error);
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
  return new ModelFailure(code, `The model could not be asked: ${message}`, { retryable });
}

/** An error that came as an event of the stream, after 200: there is no status, and some servers put one into `code`. */
function streamedFailure(error: unknown): ModelFailure {
  const [status] = isRecord(error) ? [Number(error.code), Number(error.status)].filter(isErrorStatus) : [];
  if (status !== undefined) return statusFailure(status, null);
  const words = isRecord(error) ? [error.code, error.type].filter((word) => typeof word === 'string') : [];
  if (words.some((word) => word.startsWith('rate_limit'))) return statusFailure(429, null);
  if (words.some((word) => word.startsWith('invalid_request'))) {
    return new ModelFailure('model_rejected', 'The model’s provider did not take the request', { retryable: false });
  }
  return new ModelFailure('model_unavailable', 'The model broke off its answer with an error', { retryable: true });
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status < 600;
}

async function refusalOf(response: Response, request: RequestInit | undefined, clock: Clock): Promise<ModelFailure> {
  const code = errorCodeOf(await firstBytes(response, ERROR_MAX_BYTES), request);
  return statusFailure(response.status, code, retryAfterOf(response.headers, clock));
}

function statusFailure(status: number, errorCode: string | null, retryAfterMs?: number): ModelFailure {
  const [code, retryable]: [ModelFailureCode, boolean] =
    status === 429
      ? // OpenAI's word for "no money left", which waiting does not mend.
        ['model_rate_limited', errorCode !== 'insufficient_quota']
      : status === 408
        ? ['model_timeout', true]
        : status >= 500
          ? ['model_unavailable', true]
          : ['model_rejected', false];
  const redirect = status >= 300 && status < 400 ? ', a redirect, which is not followed' : '';
  return new ModelFailure(
    code,
    `The model’s provider answered HTTP ${status}${redirect}${errorCode === null ? '' : ` (${errorCode})`}`,
    { retryable, ...(retryable && retryAfterMs !== undefined && { retryAfterMs }) },
  );
}

/** The answer's error code, where it is one: not a piece of the request, which some servers give back. */
function errorCodeOf(body: string, request: RequestInit | undefined): string | null {
  const key = new Headers(request?.headers).get('authorization')?.replace(/^Bearer /, '') ?? '';
  const sent = `${key}\n${typeof request?.body === 'string' ? request.body : ''}`;
  const answer = parseJson(body);
  const error = isRecord(answer) && isRecord(answer.error) ? answer.error : answer;
  if (!isRecord(error)) return null;
  const isCode = (word: unknown): word is string =>
    typeof word === 'string' && ERROR_CODE.test(word) && !sent.includes(word) && (key === '' || !word.includes(key));
  return [error.code, error.type].find(isCode) ?? null;
}

/** In ms; undefined where the provider does not say, or says nothing sensible. */
function retryAfterOf(headers: Headers, clock: Clock): number | undefined {
  const inMs = headers.get('retry-after-ms');
  if (inMs !== null && /^\d{1,12}(\.\d+)?$/.test(inMs)) return Math.ceil(Number(inMs));
  const after = headers.get('retry-after');
  if (after === null) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(after)) return Math.ceil(Number(after) * 1000);
  const at = Date.parse(after);
  return Number.isNaN(at) ? undefined : Math.max(0, at - clock.now().getTime());
}

async function firstBytes(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    // Leaving the loop ends the answer and its connection.
    if (bytes >= maxBytes) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, maxBytes);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
