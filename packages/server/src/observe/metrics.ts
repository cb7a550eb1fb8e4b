// The metrics of a service, in one table. docs/operations/observability.md explains each of them, and a test compares the two.
//
// Each service has its own registry. Counters and histograms are updated where things happen; gauges that need the database are
// read at a scrape (scrape.ts).
//
// Labels are few and bounded: codes, statuses, route patterns. Never an organization, a session, a URL, a host, a key or a name that
// a user chose.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

// A request, a statement, a commit: from a millisecond to the timeouts.
const SHORT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
// A model, a tool, a turn: from a tenth of a second to an hour.
const LONG_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
// A delivery: immediately, or after retries of up to three days.
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
    requests: counter('signalbox_http_requests_total', 'Completed requests', 'route', 'method', 'status'),
    requestSeconds: histogram(
      'signalbox_http_request_duration_seconds',
      'Time from a request to the end of its response, without streams',
      SHORT_SECONDS,
      'route',
      'method',
    ),
    authentications: counter('signalbox_authentications_total', 'Authentications, by result', 'code'),

    // ── The journal ──────────────────────────────────────────────────────────────────────────────────────────────────
    appendSeconds: histogram(
      'signalbox_append_duration_seconds',
      'Duration of a commit to the journal: text of many sessions, or a transition of one session',
      SHORT_SECONDS,
      'path',
    ),
    appendSessions: histogram('signalbox_append_batch_sessions', 'Sessions in one commit of text', BATCH),
    appendChunks: counter('signalbox_append_chunks_total', 'Committed chunks', 'path'),
    liveReaders: gauge('signalbox_live_readers', 'Open session streams on this node'),
    wakeUps: counter('signalbox_wakeups_total', 'Wake-ups received, from this node and from others', 'topic', 'origin'),

    // ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────
    sessions: gauge('signalbox_sessions', 'Open sessions of the installation', 'status'),
    waitingForModel: gauge(
      'signalbox_sessions_waiting_for_model',
      'Sessions that are parked because their models are unavailable, counted up to 10,000',
    ),
    waitingForLimit: gauge(
      'signalbox_sessions_waiting_for_limit',
      'Sessions that are parked because their environment limits calls of their models, counted up to 10,000',
    ),
    runnable: gauge('signalbox_sessions_runnable', 'Sessions that are ready to run but not claimed by a node'),
    runnableOldest: gauge(
      'signalbox_sessions_runnable_oldest_seconds',
      'How long the oldest runnable session has waited',
    ),
    turns: counter('signalbox_turns_total', 'Turns that ended, by outcome', 'outcome'),
    turnSeconds: histogram(
      'signalbox_turn_duration_seconds',
      'Time from when a node started or resumed a turn to its end',
      LONG_SECONDS,
    ),
    modelCalls: counter('signalbox_model_calls_total', 'Model calls that ended', 'provider', 'outcome'),
    modelSeconds: histogram(
      'signalbox_model_call_duration_seconds',
      'Duration of a model call, until the end of its response',
      LONG_SECONDS,
      'provider',
    ),
    toolCalls: counter('signalbox_tool_calls_total', 'Calls of tools that the service runs itself', 'type', 'outcome'),
    toolSeconds: histogram(
      'signalbox_tool_call_duration_seconds',
      'Duration of a tool call that the service runs itself',
      LONG_SECONDS,
      'type',
    ),
    compactions: counter('signalbox_compactions_total', 'Summaries that replaced older messages for a model'),
    sessionsDropped: counter('signalbox_dropped_sessions_total', 'Sessions deleted at the end of their retention'),
    sessionsErased: counter('signalbox_erased_sessions_total', 'Sessions deleted because their end user was erased'),
    filesDropped: counter('signalbox_dropped_files_total', 'Files deleted because nothing used them any more'),
    leaseLosses: counter('signalbox_lease_losses_total', 'Sessions that another node took over from this one'),
    leaseFailures: counter('signalbox_lease_renewal_failures_total', 'Failed renewals of the lease of this node'),

    // ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────
    deliverySeconds: histogram(
      'signalbox_webhook_delivery_duration_seconds',
      'Time from the commit of the last chunk of a delivery to its acknowledgement',
      DELIVERY_SECONDS,
    ),
    attempts: counter('signalbox_webhook_attempts_total', 'Delivery attempts, by outcome', 'outcome'),
    attemptSeconds: histogram(
      'signalbox_webhook_attempt_duration_seconds',
      'Duration of a delivery attempt',
      SHORT_SECONDS,
    ),
    backlog: gauge(
      'signalbox_webhook_backlog_sessions',
      'Sessions with chunks that their webhook has not acknowledged, counted up to 10,000 per subscription',
      'subscription',
    ),

    // ── The event log ────────────────────────────────────────────────────────────────────────────────────────────────
    eventsPending: gauge(
      'signalbox_events_pending',
      'Records that do not have their number in the event log yet, counted up to 10,000',
    ),
    eventsOldest: gauge('signalbox_events_pending_oldest_seconds', 'How long the oldest pending record has waited'),

    // ── The database ─────────────────────────────────────────────────────────────────────────────────────────────────
    databaseUp: gauge('signalbox_database_up', '1 if the database responded in time and is writable, otherwise 0'),
    connections: gauge('signalbox_database_connections', 'Connections of this node to the database'),
    connectionsIdle: gauge('signalbox_database_connections_idle', 'Idle connections of this node to the database'),
    connectionsAwaited: gauge('signalbox_database_connections_awaited', 'Operations waiting for a connection'),
    freezeAge: gauge(
      'signalbox_database_freeze_age',
      'Age of the oldest id that is not frozen, in ids, which PostgreSQL has 2 billion of',
      'scope',
      'id',
    ),
    freezeMaxAge: gauge(
      'signalbox_database_freeze_max_age',
      'Age at which autovacuum freezes a table, as PostgreSQL is configured',
      'id',
    ),

    // ── The process ──────────────────────────────────────────────────────────────────────────────────────────────────
    build: gauge('signalbox_build_info', 'Always 1', 'version'),
    startedAt: gauge('process_start_time_seconds', 'Start time of the process, in seconds since 1970'),
    cpuSeconds: counter('process_cpu_seconds_total', 'CPU time of the process'),
    residentBytes: gauge('process_resident_memory_bytes', 'Resident memory of the process'),
    heapBytes: gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use'),
    loopLag: gauge('nodejs_eventloop_lag_p99_seconds', 'Event loop lag since the last scrape, 99th percentile'),
    loopLagMax: gauge('nodejs_eventloop_lag_max_seconds', 'Event loop lag since the last scrape, maximum'),
  };
}
