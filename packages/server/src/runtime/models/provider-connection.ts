// One exchange with a provider's server, and what it means when it ends badly.
//
// A provider's SDK is handed `fetch` and `signal` from here. It never has the key: that is put on here, after it is seen that
// the request goes where the key was meant for. And what goes wrong on the wire is judged here, while status and headers are at
// hand, rather than read back out of the SDK's errors: those hold the whole prompt, so they are looked through for what was
// thrown here, and are never kept, logged or passed on.
import type { Egress } from '../../egress/egress.ts';
import type { Clock } from '../../lib/clock.ts';
import { ModelFailure } from './model.ts';
import { refusalOf, type Sent, toModelFailure } from './provider-failure.ts';

/**
 * Not every provider gives a sign of life while its model thinks: some send nothing for minutes, and a local server nothing while
 * it loads a model or reads a long transcript. Asked again, it would think all over. The turn's own time ends sooner where it must.
 */
const SILENCE_MAX_MS = 300_000;

/** Over a hundred thousand tokens, at the few hundred bytes that servers spend on each. More is an answer without an end. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

/** Whom the exchange is with. */
export interface ProviderTarget {
  /** Every request goes to its origin and carries its query. */
  readonly baseUrl: URL;
  /** The header of the key and what stands before the key in it: `['authorization', 'Bearer ']`. */
  readonly keyHeader: readonly [name: string, prefix: string];
  /** Undefined: nothing is sent in that header. */
  readonly key: string | undefined;
}

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
  { baseUrl, keyHeader: [keyHeader, keyPrefix], key }: ProviderTarget,
  callerSignal: AbortSignal,
): ProviderConnection {
  const stop = new AbortController();
  const signal = AbortSignal.any([callerSignal, stop.signal]);
  let failure: ModelFailure | undefined;
  let sent: Sent = { key, body: '' };
  let answered = false;
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
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== baseUrl.origin) {
      throw fail(
        new ModelFailure(
          'model_not_allowed',
          'The request for the model goes to a different server than its base URL',
          { retryable: false },
        ),
      );
    }
    for (const [name, value] of baseUrl.searchParams) url.searchParams.append(name, value);
    const headers = new Headers(init?.headers);
    headers.delete(keyHeader);
    if (key !== undefined) headers.set(keyHeader, keyPrefix + key);
    sent = { key, body: typeof init?.body === 'string' ? init.body : '' };

    const response = await egress.fetch(url, { ...init, headers, signal });
    heard();
    if (!response.ok) throw fail(await refusalOf(response, sent, clock));
    answered = true;
    const mediaType = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
    if (mediaType === 'text/html' || mediaType === 'application/json') {
      throw fail(
        new ModelFailure('model_protocol', `The model responded with ${mediaType} instead of an event stream`, {
          retryable: false,
        }),
      );
    }
    return new Response(response.body?.pipeThrough(counted()) ?? null, {
      status: response.status,
      headers: response.headers,
    });
  }

  function counted(): TransformStream<Uint8Array, Uint8Array> {
    let bytes = 0;
    return new TransformStream({
      transform(chunk, controller) {
        heard();
        bytes += chunk.byteLength;
        if (bytes > ANSWER_MAX_BYTES) {
          throw fail(
            new ModelFailure('model_protocol', `The response is longer than ${ANSWER_MAX_BYTES} bytes`, {
              retryable: false,
            }),
          );
        }
        controller.enqueue(chunk);
      },
    });
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
    failureOf: (error) => failure ?? toModelFailure(error, sent, answered),
    close: () => stop.abort(),
  };
}
