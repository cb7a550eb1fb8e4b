// Traces, for who has set up a collector (OTLP over HTTP); without one there is no Tracing, and nothing is spent on it.
//
// Nothing is global, and no context travels unseen: a span is named to what belongs below it as a `traceparent` (W3C Trace
// Context), a short text that can also stand in a row of the database. That is how one trace goes from the request that sent a
// message over the turn, on whatever node, to the deliveries of what it said.
//
// Spans hold ids, codes, counts and names of models and tools; never what people or models said, addresses, or secrets.
// Finished ones wait in a bounded queue, and go out in the background: a collector that is slow or dead costs spans, nothing else.
import {
  type AttributeValue,
  ROOT_CONTEXT,
  type Context as SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { version } from '../lib/version.ts';

/** By OpenTelemetry's names where it has one; what is undefined is left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

export interface Span {
  /** What belongs below it is begun with this; undefined is never given, so that who has a span has a parent. */
  readonly traceParent: string;
  /** Once; later calls are nothing. `failure` is a code. */
  end(attributes?: Attributes, failure?: string): void;
}

export interface Tracing {
  /** Begins a span. `parent` is a `traceparent`; without one, or with one that is malformed, the span begins a trace. */
  span(
    name: string,
    kind: 'server' | 'client' | 'internal',
    attributes: Attributes,
    parent: string | null | undefined,
  ): Span;
  /** Sends what has ended, as far as the collector takes it in time. */
  stop(): Promise<void>;
}

export interface TracingOptions {
  /** The collector's base: spans go to `/v1/traces` below it. */
  endpoint: string;
  /** Sent with each export; may be secret. */
  headers: Readonly<Record<string, string>>;
}

// Bounds what waits for a collector that is slow: some megabytes.
const MAX_WAITING = 2_048;
const EXPORT_TIMEOUT_MS = 5_000;
// The service does not wait longer for it when it stops.
const STOP_MS = 3_000;

export function createTracing(
  { clock, log }: { clock: Clock; log: Log },
  { endpoint, headers }: TracingOptions,
): Tracing {
  const exporter = telling(
    new OTLPTraceExporter({
      url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
      headers: { ...headers },
      timeoutMillis: EXPORT_TIMEOUT_MS,
    }),
    log,
  );
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'signalbox', 'service.version': version }),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, maxQueueSize: MAX_WAITING, exportTimeoutMillis: EXPORT_TIMEOUT_MS }),
    ],
  });
  const tracer = provider.getTracer('signalbox', version);

  return {
    span(name, kind, attributes, parent) {
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes: known(attributes) }, contextOf(parent));
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceParent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        end(more = {}, failure) {
          if (!span.isRecording()) return;
          span.setAttributes(known(more));
          if (failure !== undefined) {
            span.setAttribute('error.type', failure);
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          span.end();
        },
      };
    },
    async stop() {
      const over = new AbortController();
      const late = clock.sleep(STOP_MS, over.signal).catch(() => {});
      // Its failure was told already.
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      over.abort();
    },
  };
}

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

function known(attributes: Attributes): Record<string, AttributeValue> {
  const entries = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Record<string, AttributeValue>;
}

/** Where a new span belongs. Zeros are no ids (W3C Trace Context, section 3.2.2). */
function contextOf(parent: string | null | undefined): SpanContext {
  const [, traceId, spanId, flags] =
    /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/.exec(parent ?? '') ?? [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16) & 1;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** The same exporter; the log hears once that it fails, and that it is well again. The answer of a collector is not logged. */
function telling(exporter: SpanExporter, log: Log): SpanExporter {
  let isWell = true;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const isGood = result.error === undefined && result.code === 0;
        if (isWell && !isGood) {
          const { name, code } = (result.error ?? {}) as { name?: string; code?: number | string };
          log.warn({ name, code }, 'the collector does not accept spans; they are dropped until it is back');
        }
        if (!isWell && isGood) log.info('the collector accepts spans again');
        isWell = isGood;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
