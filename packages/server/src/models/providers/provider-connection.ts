// One exchange with a provider's server, and how its failures are classified.
//
// A provider's SDK gets `fetch` and `signal` from here. It never has the key, which is added here once it is certain that the
// request goes to the host that the key is for. Failures on the wire are also classified here, where status and headers are
// available. The SDK's errors contain the whole prompt, so they are only searched for errors that were thrown here, and never
// stored, logged or passed on.
import type { OrganizationEgress } from '../../egress/egress.ts';
import { OVER } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Ran } from '../../session-rows/ran.ts';
import { errorAfterOk, refusalOf, type Sent, toModelFailure } from '../failure/provider-failure.ts';
import type { RefusedMedia } from '../failure/refused-file.ts';
import { ModelFailure } from '../model/model.ts';
import type { ProviderError } from '../model/provider-error.ts';
import { authenticate, type ProviderKey } from '../model/provider-key.ts';
import { type RefusedParameter, withoutRefused } from '../model/refused-parameters.ts';
import type { Framing } from '../response/event-frames.ts';
import { joinedRan } from '../response/ran.ts';
import { type EventReader, readEvents } from '../response/response-events.ts';

/**
 * Some providers send nothing for minutes while their model thinks, and a local server sends nothing while it loads a model or
 * reads a long transcript. A retry would start again from the beginning. The turn's deadline may end the call sooner.
 */
const SILENCE_MAX_MS = 300_000;

/** Enough for over 100,000 tokens, at the few hundred bytes that servers send for each. More is a response without an end. */
const RESPONSE_MAX_BYTES = 64 * 1024 * 1024;

/**
 * A failure's error code is shown only if it is not in the body, which is kept for that until the response ends. This is enough for the
 * longest transcript; only a body with large files is longer.
 */
const KEPT_BODY_MAX_CHARACTERS = 8 * 1024 * 1024;

/** The request that a server has refused, and how. The same one is not sent again. */
export interface Refusal {
  body?: string;
  failure?: ModelFailure;
  error?: ProviderError | undefined;
}

/** The server of the exchange, and how to authenticate there. */
export interface ProviderTarget {
  /** Every request goes to its origin and has its query. */
  readonly baseUrl: URL;
  /** The header for the key and the prefix of the key in it: `['authorization', 'Bearer ']`. */
  readonly keyHeader: readonly [name: string, prefix: string];
  /** Undefined: the header is not sent. */
  readonly key: ProviderKey | undefined;
  /** What is left out of its requests, or has another name in them. */
  readonly withoutParameters: readonly RefusedParameter[];
  /** What was refused in exchanges before this one, and what is in this one. */
  readonly refusal: Refusal;
  /** Makes the events of its responses what the SDK takes. */
  readonly reader: () => EventReader;
  /** Undefined: its responses are server-sent events. */
  readonly framing?: Framing | undefined;
}

export interface ProviderConnection {
  /** For the SDK. If it rejects, `failure` has the reason. */
  readonly fetch: typeof globalThis.fetch;
  /** Aborted by the caller's signal, by a provider that stays silent for too long, and by `close`. */
  readonly signal: AbortSignal;
  /** What the provider said of its refusal. It may quote the prompt, so it is for look-ups only. */
  readonly error: ProviderError | undefined;
  /** What the provider ran itself, as far as its response has said it. */
  readonly ran: Ran;
  /** How many searches of the web the response says that the provider ran. */
  readonly webSearches: number;
  /** To be set before the request is sent: the kinds of its files. */
  media: ReadonlySet<RefusedMedia> | undefined;
  /** Awaits something from the provider. The limit on silence applies only while this is pending. */
  wait<T>(event: PromiseLike<T>): Promise<T>;
  /** Classifies a thrown error, or the error of a stream's `error` part. */
  failureOf(error: unknown): ModelFailure;
  /** Ends the exchange. Closes the connection if the response is incomplete. */
  close(): void;
}

export function openConnection(
  { egress, clock }: { egress: OrganizationEgress; clock: Clock },
  { baseUrl, keyHeader, key, reader, framing, withoutParameters, refusal }: ProviderTarget,
  callerSignal: AbortSignal,
): ProviderConnection {
  const stop = new AbortController();
  const signal = AbortSignal.any([callerSignal, stop.signal]);
  let failure: ModelFailure | undefined;
  let said: ProviderError | undefined;
  let sent: Sent = { key, body: '' };
  const readers: EventReader[] = [];
  let responded = false;
  let waiting = false;
  let receivedAt = clock.now().getTime();

  function received(): void {
    receivedAt = clock.now().getTime();
  }

  function fail(reason: ModelFailure, error?: ProviderError): ModelFailure {
    if (!failure) [failure, said] = [reason, error];
    return failure;
  }

  /** One timer for the whole exchange. Each read only records the time, because there can be thousands of reads a second. */
  async function watch(): Promise<void> {
    for (let leftMs = SILENCE_MAX_MS; leftMs > 0; ) {
      await clock.sleep(leftMs, signal);
      // Nothing is read while the reader is busy, so silence says nothing about the provider.
      if (!waiting) received();
      leftMs = SILENCE_MAX_MS - (clock.now().getTime() - receivedAt);
    }
    const seconds = SILENCE_MAX_MS / 1000;
    stop.abort(
      fail(new ModelFailure('model_timeout', `The model sent nothing for ${seconds} seconds`, { retryable: true })),
    );
  }
  watch().catch(() => {}); // Rejects when the exchange ends first.

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
    const body = typeof init?.body === 'string' ? withoutRefused(init.body, withoutParameters) : '';
    await authenticate({ method: init?.method ?? 'GET', url, headers, body }, key, keyHeader);
    const { media } = connection;
    sent = { key, body: body.length <= KEPT_BODY_MAX_CHARACTERS ? body : undefined, media };
    if (refusal.failure && refusal.body === sent.body) throw fail(refusal.failure, refusal.error);

    // A call without a response is retried in any case, only later.
    const response = await egress.fetch(url, {
      ...init,
      headers,
      signal,
      repeatable: true,
      ...(body !== '' && { body }),
    });
    received();
    if (!response.ok) {
      // A longer body is here until the response begins.
      const refused = await refusalOf(response, { key, body, media }, clock);
      if (refused.failure.code === 'model_key_rejected' && key?.expire?.() === true) {
        const why = `The model’s provider refused a token of ${key.label} before its time; the next call requests another`;
        throw fail(new ModelFailure('model_unavailable', why, { retryable: true, httpStatus: response.status }));
      }
      if (sent.body !== undefined) Object.assign(refusal, { body: sent.body, ...refused });
      throw fail(refused.failure, refused.error);
    }
    responded = true;
    const stream = (response.body ?? new Blob([]).stream()).pipeThrough(counted());
    const ofResponse = reader();
    readers.push(ofResponse);
    const events = await readEvents(
      framing ? stream.pipeThrough(framing.decode()) : stream,
      ofResponse,
      (error) => fail(errorAfterOk(error, sent, response.headers, clock), error),
      (ms) => clock.sleep(ms, signal),
    ).catch((error: unknown) => {
      throw fail(toModelFailure(error, responded));
    });
    if (!framing) return new Response(events, { headers: { 'content-type': 'text/event-stream' } });
    return new Response(events.pipeThrough(framing.encode()), { headers: { 'content-type': framing.contentType } });
  }

  function counted(): TransformStream<Uint8Array, Uint8Array> {
    let bytes = 0;
    return new TransformStream({
      transform(chunk, controller) {
        received();
        bytes += chunk.byteLength;
        if (bytes > RESPONSE_MAX_BYTES) {
          throw fail(
            new ModelFailure('model_protocol', `The response is longer than ${RESPONSE_MAX_BYTES} bytes`, {
              retryable: false,
            }),
          );
        }
        controller.enqueue(chunk);
      },
    });
  }

  const connection: ProviderConnection = {
    fetch,
    signal,
    media: undefined,
    get error() {
      return said;
    },
    get ran() {
      return joinedRan(readers.flatMap((one) => one.ran?.() ?? []));
    },
    get webSearches() {
      return readers.reduce((sum, one) => sum + (one.webSearches?.() ?? 0), 0);
    },
    async wait(event) {
      received();
      waiting = true;
      try {
        return await event;
      } finally {
        waiting = false;
      }
    },
    failureOf: (error) => failure ?? toModelFailure(error, responded),
    close: () => stop.abort(OVER),
  };
  return connection;
}
