// Traces, exported to a collector (OTLP over HTTP) if the operator configured one. Without one there is no Tracing and no cost.
//
// There is no global state and no implicit context. A parent span is passed on explicitly as a `traceparent` (W3C Trace Context), a
// short text that is also stored in the session's row. One trace can therefore span the request that sent a message, the turn on any
// node, and the deliveries of its output.
//
// Spans contain ids, codes, counts and names of models and tools, but no text of users or models, no addresses and no secrets. Finished
// spans wait in a bounded queue and are exported in the background: a slow or dead collector loses spans, and has no other effect.
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
import { OVER } from '../lib/aborted.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { version } from '../lib/version.ts';

/** Under OpenTelemetry's names where they exist. Undefined values are omitted. */
export type Attributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

export interface Span {
  /** The parent of child spans. */
  readonly traceParent: string;
  /** Ends the span; later calls have no effect. `failure` is a code. */
  end(attributes?: Attributes, failure?: string): void;
}

export interface Tracing {
  /** Starts a span. `parent` is a `traceparent`; without one, or if it is malformed, the span starts a new trace. */
  span(
    name: string,
    kind: 'server' | 'client' | 'internal',
    attributes: Attributes,
    parent: string | null | undefined,
  ): Span;
  /** Exports finished spans, if the collector accepts them in time. */
  stop(): Promise<void>;
}

export interface TracingOptions {
  /** The base URL of the collector: spans are sent to `/v1/traces` below it. */
  endpoint: string;
  /** Sent with each export. May contain secrets. */
  headers: Readonly<Record<string, string>>;
}

// Bounds the queue for a slow collector: some megabytes.
const MAX_WAITING = 2_048;
const EXPORT_TIMEOUT_MS = 5_000;
// The maximum wait when the service stops.
const STOP_MS = 3_000;

export function createTracing(
  { clock, log }: { clock: Clock; log: Log },
  { endpoint, headers }: TracingOptions,
): Tracing {
  const exporter = withOutageLog(
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
      // Its failure was logged already.
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      over.abort(OVER);
    },
  };
}

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

function known(attributes: Attributes): Record<string, AttributeValue> {
  const entries = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Record<string, AttributeValue>;
}

/** The context of a new span. Ids of only zeros are invalid (W3C Trace Context, section 3.2.2). */
function contextOf(parent: string | null | undefined): SpanContext {
  const [, traceId, spanId, flags] =
    /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/.exec(parent ?? '') ?? [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16) & 1;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** Wraps an exporter: logs once when it fails, and once when it recovers. Never logs the response of the collector. */
function withOutageLog(exporter: SpanExporter, log: Log): SpanExporter {
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
