// Sends finished spans to a collector: OTLP over HTTP, in its JSON form (https://opentelemetry.io/docs/specs/otlp/). Written by hand,
// because OpenTelemetry's SDK takes 18 MB of disk and 10 MB of memory for this.
//
// Spans wait in a bounded queue, in the order in which they ended. One request at a time takes some from its front, when there are enough
// for one or a few seconds have passed. While the collector does not respond they stay there, and the newest are dropped when it is full.
// Content is limited in addition: spans that come when much of it waits are kept without theirs.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { OVER } from '../lib/aborted.ts';
import { exponentialMs } from '../lib/back-off.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { version } from '../lib/version.ts';

export type AttributeValue = string | number | boolean | readonly string[];

export interface FinishedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: 'internal' | 'server' | 'client';
  startMs: number;
  endMs: number;
  attributes: Readonly<Record<string, AttributeValue>>;
  /** More attributes, with what people, models and tools said. */
  content: Readonly<Record<string, AttributeValue>>;
  hasFailed: boolean;
}

export interface Collector {
  /** The base URL: spans are sent to `/v1/traces` below it. */
  endpoint: string;
  /** Sent with each request. May contain secrets. */
  headers: Readonly<Record<string, string>>;
  compression: 'none' | 'gzip';
}

export interface SpanExport {
  add(span: FinishedSpan): void;
  /** Sends what waits, if the collector accepts it in time. */
  stop(): Promise<void>;
}

type Outcome = 'accepted' | 'refused' | 'unavailable';

// Some megabytes.
const MAX_WAITING = 2_048;
const MAX_IN_REQUEST = 512;
const CONTENT_MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
// Collectors limit the body of a request, the official one to 20 MB. JSON within JSON has about twice its length.
const CONTENT_MAX_CHARACTERS_IN_REQUEST = 2 * 1024 * 1024;
const COLLECT_MS = 5_000;
const RESPONSE_MS = 5_000;
const LONGEST_WAIT_MS = 60_000;
// The maximum wait when the service stops.
const STOP_MS = 3_000;
// As the specification says: after any other status the same request would be refused again.
const RETRYABLE = new Set([429, 502, 503, 504]);
const KINDS = { internal: 1, server: 2, client: 3 };
const FAILED = 2;

const compress = promisify(gzip);

export function createSpanExport({ clock, log }: { clock: Clock; log: Log }, collector: Collector): SpanExport {
  const url = `${collector.endpoint.replace(/\/+$/, '')}/v1/traces`;
  const queue: FinishedSpan[] = [];
  const late = new AbortController();
  let waitingCharacters = 0;
  let failures = 0;
  let isStopping = false;
  let sending: Promise<void> | undefined;
  let collected = new AbortController();

  async function sendAll(): Promise<void> {
    while (queue.length > 0) {
      await collect();
      const spans = nextSpans();
      const outcome = await send(spans);
      if (outcome === 'unavailable' && isStopping) return;
      failures = outcome === 'unavailable' ? failures + 1 : 0;
      if (outcome === 'unavailable') continue;
      queue.splice(0, spans.length);
      waitingCharacters -= spans.reduce((sum, span) => sum + charactersOf(span), 0);
    }
    // Here and not when the promise resolves: a span that is added meanwhile would wait for the next one.
    sending = undefined;
  }

  /** As many as a request may have. */
  function nextSpans(): FinishedSpan[] {
    const spans: FinishedSpan[] = [];
    let characters = 0;
    for (const span of queue) {
      characters += charactersOf(span);
      if (spans.length === MAX_IN_REQUEST || (spans.length > 0 && characters > CONTENT_MAX_CHARACTERS_IN_REQUEST))
        break;
      spans.push(span);
    }
    return spans;
  }

  const isEnough = () => queue.length >= MAX_IN_REQUEST || waitingCharacters >= CONTENT_MAX_CHARACTERS_IN_REQUEST;

  /** Waits for more spans, or for the collector. */
  async function collect(): Promise<void> {
    const waitMs = failures === 0 ? COLLECT_MS : exponentialMs(failures, COLLECT_MS, LONGEST_WAIT_MS);
    if (isStopping || (failures === 0 && isEnough())) return;
    collected = new AbortController();
    await clock.sleep(waitMs, collected.signal).catch(() => {});
  }

  async function send(spans: readonly FinishedSpan[]): Promise<Outcome> {
    const settled = new AbortController();
    const slow = new AbortController();
    void clock.sleep(RESPONSE_MS, settled.signal).then(
      () => slow.abort(OVER),
      () => {},
    );
    try {
      const { body, headers } = await encode(spans);
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, ...collector.headers },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([slow.signal, late.signal]),
      });
      await response.body?.cancel();
      return note(
        response.ok ? 'accepted' : RETRYABLE.has(response.status) ? 'unavailable' : 'refused',
        response.status,
      );
    } catch (error) {
      const { code, name } = ((error as Error).cause ?? error) as { code?: string; name?: string };
      return note('unavailable', code ?? name);
    } finally {
      settled.abort(OVER);
    }
  }

  async function encode(
    spans: readonly FinishedSpan[],
  ): Promise<{ body: string | Uint8Array<ArrayBuffer>; headers: Record<string, string> }> {
    const text = JSON.stringify(requestOf(spans));
    const headers = { 'content-type': 'application/json' };
    if (collector.compression === 'none') return { body: text, headers };
    return { body: new Uint8Array(await compress(text)), headers: { ...headers, 'content-encoding': 'gzip' } };
  }

  let isWell = true;
  /** Logs once when sending fails, and once when it works again. Never logs the response of the collector. */
  function note(outcome: Outcome, code: number | string | undefined): Outcome {
    const isGood = outcome === 'accepted';
    if (isWell && !isGood) log.warn({ code }, `the collector does not accept spans; ${MAX_WAITING} are kept at most`);
    if (!isWell && isGood) log.info('the collector accepts spans again');
    isWell = isGood;
    return outcome;
  }

  return {
    add(span) {
      if (isStopping || queue.length >= MAX_WAITING) return;
      const hasRoom = waitingCharacters + charactersOf(span) <= CONTENT_MAX_WAITING_CHARACTERS;
      queue.push(hasRoom ? span : { ...span, content: { 'signalbox.content_dropped': true } });
      waitingCharacters += hasRoom ? charactersOf(span) : 0;
      if (failures === 0 && isEnough()) collected.abort(OVER);
      sending ??= sendAll();
    },

    async stop() {
      isStopping = true;
      collected.abort(OVER);
      const done = new AbortController();
      void clock.sleep(STOP_MS, done.signal).then(
        () => late.abort(OVER),
        () => {},
      );
      await sending;
      done.abort(OVER);
    },
  };
}

function charactersOf({ content }: FinishedSpan): number {
  return Object.values(content).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}

/** An `ExportTraceServiceRequest`. */
function requestOf(spans: readonly FinishedSpan[]): object {
  const resource = { attributes: attributesOf({ 'service.name': 'signalbox', 'service.version': version }) };
  const scope = { name: 'signalbox', version };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(wireSpan) }] }] };
}

function wireSpan({ startMs, endMs, kind, attributes, content, hasFailed, ...span }: FinishedSpan): object {
  return {
    ...span,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf({ ...attributes, ...content }),
    status: hasFailed ? { code: FAILED } : {},
  };
}

/** As text, because a number has no 64 bits. Exact to the microsecond. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}

function attributesOf(attributes: Readonly<Record<string, AttributeValue>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: wireValue(value) }));
}

function wireValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: value } : { doubleValue: value };
  return { arrayValue: { values: value.map(wireValue) } };
}
