// Traces, exported to a collector (otlp.ts) if the operator configured one. Without one there is no Tracing and no cost.
//
// There is no global state and no implicit context. A parent span is passed on explicitly as a `traceparent` (W3C Trace Context), a
// short text that is also stored in the session's row. One trace can therefore span the request that sent a message, the turn on any
// node, and the deliveries of its output.
//
// Spans contain ids, codes, counts and names of models and tools, but no addresses and no secrets. They contain text of users, models and
// tools only if the operator wants that. Finished spans are exported in the background: a slow or dead collector loses spans, and has no
// other effect.
import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { type AttributeValue, type Collector, createSpanExport, type FinishedSpan } from './otlp.ts';

/** Under OpenTelemetry's names where they exist. Undefined values are omitted. */
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

export interface Span {
  /** The parent of child spans. */
  readonly traceParent: string;
  /** Whether `end` takes content. Without it, none should be built. */
  readonly takesContent: boolean;
  /**
   * Ends the span; later calls have no effect. `failure` is a code. `content`: what people, models and tools said; left out while much of
   * it waits for the collector.
   */
  end(attributes?: Attributes, failure?: string, content?: Attributes): void;
}

export interface Tracing {
  /** Starts a span. `parent` is a `traceparent`; without one, or if it is malformed, the span starts a new trace. */
  span(name: string, kind: FinishedSpan['kind'], attributes: Attributes, parent: string | null | undefined): Span;
  /** Exports finished spans, if the collector accepts them in time. */
  stop(): Promise<void>;
}

interface Parent {
  traceId: string;
  spanId: string | undefined;
  isSampled: boolean;
}

/** The settings of these names. */
export interface TracingSettings {
  otlpEndpoint: Collector['endpoint'];
  otlpHeaders: Collector['headers'];
  otlpCompression: Collector['compression'];
  otlpContent: boolean;
}

export function createTracing({ clock, log }: { clock: Clock; log: Log }, settings: TracingSettings): Tracing {
  const { otlpEndpoint: endpoint, otlpHeaders: headers, otlpCompression: compression } = settings;
  const exported = createSpanExport({ clock, log }, { endpoint, headers, compression });
  return {
    span(name, kind, attributes, parent) {
      const { traceId, spanId: parentSpanId, isSampled } = parentOf(parent);
      const spanId = randomBytes(8).toString('hex');
      const startMs = clock.now().getTime();
      const begun = clock.elapsedMs();
      let hasEnded = !isSampled;
      return {
        traceParent: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`,
        takesContent: settings.otlpContent && isSampled,
        end(more = {}, failure, content) {
          if (hasEnded) return;
          hasEnded = true;
          exported.add({
            ...{ traceId, spanId, parentSpanId, name, kind, startMs },
            endMs: startMs + clock.elapsedMs() - begun,
            attributes: known({ ...attributes, ...more, 'error.type': failure }),
            content: settings.otlpContent && content ? known(content) : {},
            hasFailed: failure !== undefined,
          });
        },
      };
    },
    stop: () => exported.stop(),
  };
}

function known(attributes: Attributes): Record<string, AttributeValue> {
  const entries = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Record<string, AttributeValue>;
}

/** Ids of only zeros are invalid (W3C Trace Context, section 3.2.2). */
function parentOf(traceParent: string | null | undefined): Parent {
  const [, traceId, spanId, flags] =
    /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceParent ?? '') ?? [];
  if (!traceId || !spanId || !flags) {
    return { traceId: randomBytes(16).toString('hex'), spanId: undefined, isSampled: true };
  }
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
