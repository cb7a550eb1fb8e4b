// The journal's writer with 500 concurrent sessions. It runs in this process on the service's database, while the service is idle.
//
// `append` is how many chunks it writes per second if each session always has some waiting; the limit inserts the rows of the
// same batches with only `unnest`. `append-latency` is the time from the model's output of a chunk to its commit at a steady 100
// chunks per second and session; the limit is what such a batch takes alone.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import sql from 'sql-template-tag';
import { createDb, type Db } from '../packages/server/src/db/db.ts';
import { createShards } from '../packages/server/src/db/shards.ts';
import { type Appender, createAppender, type TextHead } from '../packages/server/src/journal/appender.ts';
import type { Live } from '../packages/server/src/journal/live.ts';
import type { Segment } from '../packages/server/src/journal/segment.ts';
import { systemClock } from '../packages/server/src/lib/clock.ts';
import { newUuid, parseId } from '../packages/server/src/lib/ids.ts';
import { createLog } from '../packages/server/src/lib/log.ts';
import { createMetrics } from '../packages/server/src/observe/metrics.ts';
import { type Benchmark, growthPerSecond, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent } from './support/session-client.ts';
import { quantile, rowOf } from './support/table.ts';

const SESSIONS = 500;
// Unacknowledged chunks of each session when throughput is measured: half a second of a fast model.
const WINDOW = 50;
const TICK_MS = 10;
const LATENCY_SAMPLE_MS = 3_000;
export const DELTA = ' token';

/** How many chunks each session had in one commit. */
type Batch = number[];

export interface Feed {
  heads: TextHead[];
  appender: Appender;
  /** Called for each segment, after its commit. */
  onCommitted: (head: TextHead, deltas: number) => void;
  /** The batches committed so far. */
  batches: Batch[];
}

export const append: Benchmark = {
  name: 'append',
  async run() {
    const bench = await startBench();
    const organizationId = parseId('org', bench.organizationId)!;
    const agentId = parseId('agt', await createScriptedAgent(bench))!;
    const db = createDb({ url: bench.databaseUrl });
    const feed = createFeed(db, await insertSessions(db, organizationId, agentId, SESSIONS));
    const database = new pg.Client(bench.databaseUrl);
    await database.connect();
    // Analyzed as rarely as `segments`, whose settings `like` does not copy: an analysis would slow down what is measured next.
    await database.query(
      'create table bench_segments (like segments including all) with (autovacuum_analyze_scale_factor = 0.5)',
    );
    const bare = createBare(database, organizationId);

    const throughput = await measurePairs(
      () => chunksPerSecond(feed),
      async () => {
        const begin = performance.now();
        for (const batch of feed.batches) await bare(batch);
        const chunks = feed.batches.flat().reduce((sum, deltas) => sum + deltas, 0);
        return (chunks / (performance.now() - begin)) * 1000;
      },
    );
    const latency = await measurePairs(
      async () => {
        // A new database creates files of its write-ahead log as it goes, which takes 30 to 50 ms each. It reuses those from before a
        // checkpoint, as a database does that has run for some time.
        await database.query('checkpoint');
        return latencyMs(feed);
      },
      async () => {
        const taken: number[] = [];
        for (const batch of feed.batches) {
          const begin = performance.now();
          await bare(batch);
          taken.push(performance.now() - begin);
        }
        return quantile(taken, 0.99);
      },
    );
    await feed.appender.close();
    await database.end();
    await db.close();
    await bench.stop();
    return [
      rowOf({ name: 'append', unit: 'chunks/s', target: '≥ 0.70, ≥ 100,000/s' }, throughput),
      rowOf({ name: 'append-latency', unit: 'ms, p99', target: '≤ 60 ms' }, latency),
    ];
  },
};

/** Creates idle sessions; each is returned with its organization. */
export async function insertSessions(
  db: Db,
  organizationId: string,
  agentId: string,
  count: number,
): Promise<string[]> {
  const sessionIds = Array.from({ length: count }, () => newUuid());
  const now = systemClock.now();
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, close_on_idle,
      metadata, created_at, updated_at)
    select ${organizationId}, id, ${agentId}, 'production', 'idle', 1, false, '{}', ${now}::timestamptz, ${now}::timestamptz
    from unnest(${sessionIds}::uuid[]) as id`);
  return sessionIds.map((sessionId) => `${organizationId} ${sessionId}`);
}

/** The journal's writer, for these sessions. */
export function createFeed(db: Db, ids: readonly string[]): Feed {
  const heads = ids.map((id): TextHead => {
    const [organizationId = '', sessionId = ''] = id.split(' ');
    return {
      organizationId,
      environment: 'production',
      sessionId,
      epoch: 0,
      turn: 1,
      nextSeq: 1,
      pending: [],
      carry: '',
      writing: undefined,
      first: false,
      onFenced: () => {
        throw new Error('a session of the benchmark has another writer');
      },
    };
  });
  const headOf = new Map(heads.map((head) => [head.sessionId, head]));
  let open: Batch | undefined;

  function committed(sessionId: string, _: unknown, segments: readonly Segment[]): void {
    // All segments of a commit are announced together.
    if (!open) {
      open = [];
      feed.batches.push(open);
      queueMicrotask(() => {
        open = undefined;
      });
    }
    for (const { seqFrom, seqTo } of segments) {
      open.push(seqTo - seqFrom + 1);
      feed.onCommitted(headOf.get(sessionId)!, seqTo - seqFrom + 1);
    }
  }

  const feed: Feed = {
    heads,
    batches: [],
    onCommitted: () => {},
    appender: createAppender({
      db,
      shards: createShards(db),
      clock: systemClock,
      log: createLog({ level: 'warn' }),
      metrics: createMetrics(),
      live: { committed } as unknown as Live,
      wake: {
        publish: () => {},
        subscribe: () => () => {},
        subscribeToEnvironment: () => () => {},
        follow: () => {},
        hintCounts: () => ({ here: new Map(), elsewhere: new Map() }),
        close: async () => {},
      },
    }),
  };
  return feed;
}

async function chunksPerSecond(feed: Feed): Promise<number> {
  let chunks = 0;
  feed.batches = [];
  const give = (head: TextHead, deltas: number) => {
    for (let at = 0; at < deltas; at += 1) void feed.appender.append(head, DELTA);
  };
  feed.onCommitted = (head, deltas) => {
    chunks += deltas;
    give(head, deltas);
  };
  for (const head of feed.heads) give(head, WINDOW);
  const rate = await growthPerSecond(() => chunks);
  feed.onCommitted = () => {};
  await drained(feed);
  return rate;
}

/** The 99th percentile over chunks. */
async function latencyMs(feed: Feed): Promise<number> {
  const givenAt = new Map<TextHead, number[]>(feed.heads.map((head) => [head, []]));
  const taken: number[] = [];
  feed.batches = [];
  feed.onCommitted = (head, deltas) => {
    const now = performance.now();
    for (const given of givenAt.get(head)!.splice(0, deltas)) taken.push(now - given);
  };
  const begin = performance.now();
  let ticks = 0;
  while (performance.now() - begin < LATENCY_SAMPLE_MS) {
    // Sessions stream at different times: a tenth of them in each millisecond.
    for (; ticks < performance.now() - begin; ticks += 1) {
      for (let at = ticks % TICK_MS; at < SESSIONS; at += TICK_MS) {
        const head = feed.heads[at]!;
        givenAt.get(head)!.push(performance.now());
        void feed.appender.append(head, DELTA);
      }
    }
    await sleep(1);
  }
  await drained(feed);
  return quantile(taken, 0.99);
}

/** Resolves when all chunks are committed. */
async function drained({ heads }: Feed): Promise<void> {
  while (heads.some((head) => head.pending.length > 0 || head.writing)) await sleep(1);
}

/** Inserts the rows of a batch with only `unnest`. */
function createBare(database: pg.Client, organizationId: string): (batch: Batch) => Promise<unknown> {
  const sessionIds = Array.from({ length: SESSIONS }, () => newUuid());
  const bodies = new Map<number, string>();
  let nextSeq = 1;
  const bodyOf = (deltas: number) => {
    const body = bodies.get(deltas) ?? JSON.stringify(Array.from({ length: deltas }, () => DELTA));
    bodies.set(deltas, body);
    return body;
  };
  return (batch) => {
    const seqFrom = nextSeq;
    nextSeq += Math.max(...batch);
    return database.query({
      name: 'insert',
      text: `
        insert into bench_segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
        select $1, sid, 1, $2::bigint + n - 1, $2::bigint, body, $3
        from unnest($4::uuid[], $5::int[], $6::text[]) as b(sid, n, body)`,
      values: [organizationId, seqFrom, new Date(), sessionIds.slice(0, batch.length), batch, batch.map(bodyOf)],
    });
  };
}
