// What can be measured of a service, in one table; docs/observability.md says what each is good for, and a test compares the two.
//
// Each service has a registry of its own. Whoever does a thing counts it here; what is only asked for when somebody looks
// (gauges) is asked in scrape.ts.
//
// Labels are few and bounded: codes, statuses, patterns of routes. Never an organization, a Session, a URL, a host, a key or a
// name that a person chose.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

// A request, a statement, a commit: from a millisecond to the time-outs.
const SHORT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
// A model, a tool, a turn: from a tenth of a second to an hour.
const LONG_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
// A delivery: at once, or after retries of up to three days.
const DELIVERY_SECONDS = [
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  15,
  60,
  300,
  1800,
  3600,
  6 * 3600,
  24 * 3600,
  72 * 3600,
];
const BATCH = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers });
  const histogram = <L extends string = never>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
    new Histogram({ name, help, labelNames, buckets, registers });

  return {
    registry,

    // ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────────────
    requests: counter('signalbox_http_requests_total', 'Requests answered', 'route', 'method', 'status'),
    requestSeconds: histogram(
      'signalbox_http_request_duration_seconds',
      'From a request to its answer, streams left out',
      SHORT_SECONDS,
      'route',
      'method',
    ),
    authentications: counter('signalbox_authentications_total', 'Credentials looked at, by what came of it', 'code'),

    // ── The journal ──────────────────────────────────────────────────────────────────────────────────────────────────
    appendSeconds: histogram(
      'signalbox_append_duration_seconds',
      'One commit to the journal: text of many Sessions together, or a transition of one',
      SHORT_SECONDS,
      'path',
    ),
    appendSessions: histogram('signalbox_append_batch_sessions', 'Sessions whose text one commit held', BATCH),
    appendChunks: counter('signalbox_append_chunks_total', 'Chunks written', 'path'),
    liveReaders: gauge('signalbox_live_readers', 'Live streams of Sessions open on this node'),
    wakeUps: counter('signalbox_wakeups_total', 'Wake-ups heard, from this node and from others', 'topic', 'origin'),

    // ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────
    sessions: gauge('signalbox_sessions', 'Open Sessions of the installation', 'status'),
    runnable: gauge('signalbox_sessions_runnable', 'Sessions that could go on and that no node has taken'),
    runnableOldest: gauge('signalbox_sessions_runnable_oldest_seconds', 'How long the first of them has waited'),
    turns: counter('signalbox_turns_total', 'Turns that ended, by why', 'outcome'),
    turnSeconds: histogram(
      'signalbox_turn_duration_seconds',
      'From when a node took a turn up, after a wait anew, to its end',
      LONG_SECONDS,
    ),
    modelCalls: counter('signalbox_model_calls_total', 'Model calls that ended', 'provider', 'outcome'),
    modelSeconds: histogram(
      'signalbox_model_call_duration_seconds',
      'A model call, to the end of its answer',
      LONG_SECONDS,
      'provider',
    ),
    toolCalls: counter('signalbox_tool_calls_total', 'Calls of tools that the service runs itself', 'type', 'outcome'),
    toolSeconds: histogram('signalbox_tool_call_duration_seconds', 'Such a call', LONG_SECONDS, 'type'),
    sessionsDropped: counter('signalbox_dropped_sessions_total', 'Sessions deleted because they ended long ago'),
    leaseLosses: counter('signalbox_lease_losses_total', 'Sessions that another took from this node'),
    leaseFailures: counter('signalbox_lease_renewal_failures_total', 'Renewals of the lease of this node that failed'),

    // ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────
    deliverySeconds: histogram(
      'signalbox_webhook_delivery_duration_seconds',
      'From the commit of the last chunk of a delivery to its acknowledgement',
      DELIVERY_SECONDS,
    ),
    attempts: counter('signalbox_webhook_attempts_total', 'Attempts at deliveries, by what came of them', 'outcome'),
    attemptSeconds: histogram('signalbox_webhook_attempt_duration_seconds', 'One attempt', SHORT_SECONDS),
    backlog: gauge(
      'signalbox_webhook_backlog_sessions',
      'Sessions with chunks that their webhook has not acknowledged; counted up to 10,000 a subscription',
      'subscription',
    ),

    // ── The event log ────────────────────────────────────────────────────────────────────────────────────────────────
    eventsPending: gauge(
      'signalbox_events_pending',
      'Records that wait for their place in the event log; counted up to 10,000',
    ),
    eventsOldest: gauge('signalbox_events_pending_oldest_seconds', 'How long the oldest of them has waited'),

    // ── The database ─────────────────────────────────────────────────────────────────────────────────────────────────
    databaseUp: gauge('signalbox_database_up', '1 where the database answered in time, else 0'),
    connections: gauge('signalbox_database_connections', 'Connections of this node to the database'),
    connectionsIdle: gauge('signalbox_database_connections_idle', 'Those of them that nobody uses now'),
    connectionsAwaited: gauge('signalbox_database_connections_awaited', 'Who waits for a connection now'),

    // ── The process ──────────────────────────────────────────────────────────────────────────────────────────────────
    build: gauge('signalbox_build_info', 'Always 1', 'version'),
    startedAt: gauge('process_start_time_seconds', 'When the process started, in seconds since 1970'),
    cpuSeconds: counter('process_cpu_seconds_total', 'CPU time of the process'),
    residentBytes: gauge('process_resident_memory_bytes', 'Memory of the process'),
    heapBytes: gauge('nodejs_heap_size_used_bytes', 'Memory in use by JavaScript'),
    loopLag: gauge('nodejs_eventloop_lag_p99_seconds', 'How late timers fire: 99 of 100 less than this'),
    loopLagMax: gauge('nodejs_eventloop_lag_max_seconds', 'The same, the latest since the last scrape'),
  };
}
