// The response to a scrape by Prometheus: the counters of this node, and gauges that are read at the scrape.
//
// Gauges from the database come from cheap statements across organizations, without locks, with a timeout. None looks each organization
// up; counts that need that are read in rounds (overview/counting-round.ts). The results are cached for some seconds, longer if they took long, so any number of scrapers cost one query. If the database does not
// respond, the scrape still succeeds: `signalbox_database_up` is 0, and the gauges from the database are omitted.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { OVER } from '../lib/aborted.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { version } from '../lib/version.ts';
import type { Wake } from '../wake/wake.ts';
import type { Metrics } from './metrics.ts';

export interface Scrape {
  /** In the text format of Prometheus. Does not reject if the database fails. */
  text(): Promise<string>;
  stop(): Promise<void>;
}

export interface ScrapePlatform {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly live: { readers(): number };
  readonly wake: Pick<Wake, 'hintCounts'>;
}

const KEPT_MS = 5_000;
// Queries take at most a tenth of one connection's time.
const KEPT_TIMES = 10;
// Less than Prometheus's own default of 10 s.
const TIMEOUT_MS = 2_000;
const MOST_COUNTED = 10_000;
const LOOP_RESOLUTION_MS = 20;

/** By organization, of the last round through all of them. */
export interface RoundCounts {
  /** Open sessions by status. */
  sessions: Map<string, number>;
  /** Sessions with chunks to deliver, by the status of their subscription. */
  backlog: Map<string, number>;
}

interface Counts {
  forModel: { outage: number; limit: number };
  runnable: Waiting;
  events: Waiting;
  freezing: Freezing;
  /** Undefined until the first round is complete. */
  inRounds: RoundCounts | undefined;
}

/** In ids. `databaseX`: of transactions; `databaseM`: of multixacts. */
interface Freezing {
  databaseX: number;
  databaseM: number;
  /** Null until the tables are there. */
  tablesX: number | null;
  tablesM: number | null;
  maxX: number;
  maxM: number;
}

interface Waiting {
  count: number;
  oldest: Date | null;
}

/** `inRounds` counts what takes a look-up or more for each organization, in a bounded time. */
export function createScrape(
  { db, clock, log, metrics, live, wake }: ScrapePlatform,
  inRounds: () => Promise<RoundCounts | undefined>,
): Scrape {
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  const stopping = new AbortController();
  let cpuMicros = 0;
  let looked: { until: number } = { until: 0 };
  let looking: Promise<void> | undefined;
  let isUp = true;

  metrics.build.set({ version }, 1);
  metrics.startedAt.set(Math.round(clock.now().getTime() / 1000 - process.uptime()));

  function showProcess(): void {
    const { user, system } = process.cpuUsage();
    metrics.cpuSeconds.inc((user + system - cpuMicros) / 1e6);
    cpuMicros = user + system;
    const { rss, heapUsed } = process.memoryUsage();
    metrics.residentBytes.set(rss);
    metrics.heapBytes.set(heapUsed);
    // The monitor measures from timer to timer.
    const lag = (ns: number) => Math.max(0, ns / 1e9 - LOOP_RESOLUTION_MS / 1000);
    metrics.loopLag.set(lag(loop.percentile(99)));
    metrics.loopLagMax.set(lag(loop.max));
    loop.reset();
    const { total, idle, awaited } = db.pool();
    metrics.connections.set(total);
    metrics.connectionsIdle.set(idle);
    metrics.connectionsAwaited.set(awaited);
    metrics.liveReaders.set(live.readers());
    metrics.wakeUps.reset();
    for (const [origin, counts] of Object.entries(wake.hintCounts())) {
      for (const [topic, count] of counts) metrics.wakeUps.inc({ topic, origin }, count);
    }
  }

  /** Undefined as well if it fails: a page that takes too long does not mean that the database is away. */
  function countInRounds(): Promise<RoundCounts | undefined> {
    return inRounds().catch((error: unknown) => {
      log.warn({ err: error }, 'counting organizations for metrics failed; it continues with the next scrape');
      return undefined;
    });
  }

  async function look(): Promise<void> {
    const startedAt = clock.now().getTime();
    // The check comes first, because a read-only database would answer the queries too.
    const counting = db
      .check()
      .then(async () => ({ ...(await countAll(db, clock.now())), inRounds: await countInRounds() }));
    const counts = await counting.catch((error) => {
      if (isUp) log.warn({ err: error }, 'the database did not respond to the metrics query');
      return undefined;
    });
    isUp = counts !== undefined;
    show(counts);
    const endedAt = clock.now().getTime();
    looked = { until: endedAt + Math.max(KEPT_MS, (endedAt - startedAt) * KEPT_TIMES) };
  }

  function show(counts: Counts | undefined): void {
    metrics.databaseUp.set(counts ? 1 : 0);
    for (const gauge of [metrics.sessions, metrics.backlog, metrics.freezeAge, metrics.freezeMaxAge]) gauge.reset();
    const { waitingForModel, waitingForLimit, runnable, runnableOldest, eventsPending, eventsOldest } = metrics;
    for (const gauge of [waitingForModel, waitingForLimit, runnable, runnableOldest, eventsPending, eventsOldest]) {
      // `reset` would set a gauge without labels to 0, but its value is unknown.
      gauge.remove();
    }
    if (!counts) return;
    const now = clock.now().getTime();
    const ageSeconds = ({ oldest }: Waiting) => (oldest ? Math.max(0, now - oldest.getTime()) / 1000 : 0);
    for (const [status, count] of counts.inRounds?.sessions ?? []) metrics.sessions.set({ status }, count);
    for (const [subscription, count] of counts.inRounds?.backlog ?? []) metrics.backlog.set({ subscription }, count);
    waitingForModel.set(counts.forModel.outage);
    waitingForLimit.set(counts.forModel.limit);
    metrics.runnable.set(counts.runnable.count);
    metrics.runnableOldest.set(ageSeconds(counts.runnable));
    metrics.eventsPending.set(counts.events.count);
    metrics.eventsOldest.set(ageSeconds(counts.events));
    showFreezing(metrics, counts.freezing);
  }

  /** Limits the wait for the query: with an exhausted pool or a cut network it may never end. */
  async function showDatabase(): Promise<void> {
    if (!looking && clock.now().getTime() >= looked.until) {
      looking = look().finally(() => {
        looking = undefined;
      });
    }
    if (!looking) return;
    const over = new AbortController();
    const late = clock.sleep(TIMEOUT_MS, AbortSignal.any([over.signal, stopping.signal])).then(
      () => show(undefined),
      () => {},
    );
    await Promise.race([looking, late]);
    over.abort(OVER);
  }

  return {
    async text() {
      await showDatabase();
      showProcess();
      return metrics.registry.metrics();
    },
    async stop() {
      stopping.abort(OVER);
      loop.disable();
      await looking;
    },
  };
}

async function countAll(db: Db, now: Date): Promise<Omit<Counts, 'inRounds'>> {
  const [, , forModel = [], runnable = [], events = [], freezing = []] = await db.batch<unknown>([
    sql`select set_config('statement_timeout', ${String(TIMEOUT_MS)}, true)`,
    planForLookups,
    // Its index has few other sessions: those whose approvals expire, and offered steps.
    sql`
      select count(*) filter (where waiting_for->'error'->>'code' <> 'model_limit_reached')::integer as outage,
        count(*) filter (where waiting_for->'error'->>'code' = 'model_limit_reached')::integer as limit
      from (
        select waiting_for from sessions
        where node_id is null and runnable_at is not null and (queue is not null or status <> 'running')
        order by runnable_at, session_id limit ${MOST_COUNTED}) counted
      where waiting_for->>'type' = 'model'`,
    sql`
      select count(*)::integer as count, min(runnable_at) as oldest from (
        select runnable_at from sessions where node_id is null and runnable_at <= ${now}
        order by runnable_at limit ${MOST_COUNTED}) counted`,
    sql`
      select count(*)::integer as count, min(occurred_at) as oldest from (
        select occurred_at from events_pending limit ${MOST_COUNTED}) counted`,
    sql`
      select age(d.datfrozenxid)::bigint as "databaseX", mxid_age(d.datminmxid)::bigint as "databaseM",
        t.x::bigint as "tablesX", t.m::bigint as "tablesM",
        current_setting('autovacuum_freeze_max_age')::bigint as "maxX",
        current_setting('autovacuum_multixact_freeze_max_age')::bigint as "maxM"
      from pg_database d
      cross join (
        select max(greatest(age(c.relfrozenxid), age(l.relfrozenxid))) as x,
          max(greatest(mxid_age(c.relminmxid), mxid_age(l.relminmxid))) as m
        from pg_class c
        left join pg_class l on l.oid = c.reltoastrelid
        where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r') t
      where d.datname = current_database()`,
  ]);
  return {
    forModel: forModel[0] as Counts['forModel'],
    runnable: runnable[0] as Waiting,
    events: events[0] as Waiting,
    freezing: freezing[0] as Freezing,
  };
}

function showFreezing({ freezeAge, freezeMaxAge }: Metrics, ages: Freezing): void {
  freezeAge.set({ scope: 'database', id: 'transaction' }, ages.databaseX);
  freezeAge.set({ scope: 'database', id: 'multixact' }, ages.databaseM);
  if (ages.tablesX !== null) freezeAge.set({ scope: 'tables', id: 'transaction' }, ages.tablesX);
  if (ages.tablesM !== null) freezeAge.set({ scope: 'tables', id: 'multixact' }, ages.tablesM);
  freezeMaxAge.set({ id: 'transaction' }, ages.maxX);
  freezeMaxAge.set({ id: 'multixact' }, ages.maxM);
}
