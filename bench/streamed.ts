// Sessions whose model streams over HTTP as a real one does: 300 deltas, 40 a second. One node runs them; each has a reader there and one on
// another node.
//
// The processor time of the node that runs them and of PostgreSQL, the write-ahead log and the delay are for each delta; the rows of
// segments and the transaction numbers for each response. The delay is from the model's sending to the reader.
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Pool } from 'undici';
import { type Bench, type Benchmark, type Child, startBench, startChild } from './support/harness.ts';
import { IDLE } from './support/session-client.ts';
import { DELTAS, INTERVAL_MS } from './support/streamed-model.ts';
import { quantile, type Row, rowOf } from './support/table.ts';

const SIZES = [20, 200, 1_000];
/** 40,000 deltas a second: the model, the readers and three processes of Signalbox need more than the others leave free. */
const CORES_FOR_LARGEST = 8;
const SAMPLES = 3;
const SAMPLE_MS = 8_000;
/** The first sessions begin within the time of one response, so that the sessions of a sample are in all parts of their responses. */
const START_MS = DELTAS * INTERVAL_MS;
const SETTLE_MS = 3_000;
/** Whether text goes through the tail (SIGNALBOX_TAIL). A node uses it a minute after its start. */
const TAIL = process.env.SIGNALBOX_TAIL ?? 'off';
const UNTIL_TAIL_MS = TAIL === 'on' ? 65_000 : 0;
const LIMITS = {
  SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000',
  SIGNALBOX_MAX_STREAMS_PER_KEY: '0',
  SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
};

/** What one node's readers have seen. */
interface Seen {
  deltas: number;
  delays: number[];
}

interface Sample {
  nodeMicros: number;
  databaseMicros: number;
  walBytes: number;
  here: number[];
  there: number[];
}

export const streamed: Benchmark = {
  name: 'streamed',
  async run() {
    const rows: Row[] = [];
    const isSmall = availableParallelism() < CORES_FOR_LARGEST;
    for (const size of isSmall ? SIZES.slice(0, -1) : SIZES) rows.push(...(await measure(size)));
    if (isSmall) console.error(`  1,000 sessions are not measured: this needs ${CORES_FOR_LARGEST} cores.`);
    return rows;
  },
};

async function measure(size: number): Promise<Row[]> {
  // It has the database, and runs no session.
  const bench = await startBench({ roles: 'api', settings: LIMITS });
  const [running, other] = [await startNode(bench, 'api,runtime'), await startNode(bench, 'api')];
  const model = await startChild('model-process.ts');
  const database = new pg.Client(bench.databaseUrl);
  await database.connect();
  const agentId = await createAgent(bench, model.hello);
  const [here, there] = [newSeen(), newSeen()];
  await sleep(UNTIL_TAIL_MS);
  const load = startLoad(bench, agentId, size, { running, other, here, there });
  await sleep(START_MS + SETTLE_MS);
  const samples: Sample[] = [];
  for (let at = 0; at < SAMPLES; at += 1) samples.push(await sample(bench, running, database, here, there));
  await load.stop();
  const rows = rowsOf(size, samples, await countResponses(database));
  await database.end();
  for (const child of [model, other, running]) await child.stop();
  await bench.stop();
  return rows;
}

function startNode(bench: Bench, roles: string): Promise<Child> {
  return startChild('service-process.ts', {
    env: {
      ...LIMITS,
      DATABASE_URL: bench.databaseUrl,
      SIGNALBOX_PORT: '0',
      SIGNALBOX_MASTER_KEY: bench.masterKey,
      SIGNALBOX_ROLES: roles,
      SIGNALBOX_TAIL: TAIL,
      SIGNALBOX_LOG_LEVEL: 'error',
    },
  });
}

async function createAgent(bench: Bench, baseUrl: string): Promise<string> {
  const model = { provider: 'openai-compatible', model: 'streamed', baseUrl };
  const { agent } = await bench.call<{ agent: { agentId: string } }>('POST', '/agents', { name: 'Streamed', model });
  return agent.agentId;
}

function newSeen(): Seen {
  return { deltas: 0, delays: [] };
}

interface Readers {
  running: Child;
  other: Child;
  here: Seen;
  there: Seen;
}

/** Each of `size` loops opens one session after another. `stop` lets those under way end. */
function startLoad(bench: Bench, agentId: string, size: number, { running, other, here, there }: Readers) {
  const pools = [running, other].map(({ hello }) => new Pool(hello, { connections: 2 * size, bodyTimeout: 0 }));
  const [ours, theirs] = pools as [Pool, Pool];
  const headers = { authorization: `Bearer ${bench.adminKey}`, accept: 'text/event-stream' };
  let isStopping = false;
  async function loop(at: number): Promise<void> {
    await sleep((at * START_MS) / size);
    while (!isStopping) {
      const opened = await ours.request({
        method: 'POST',
        path: '/api/v1/sessions',
        headers: { ...headers, accept: 'application/json', 'content-type': 'application/json' },
        body: JSON.stringify({ agentId, environment: 'production', input: 'Hello' }),
      });
      const { session } = (await opened.body.json()) as { session: { sessionId: string } };
      const path = `/api/v1/sessions/${session.sessionId}/stream`;
      await Promise.all([read(ours, path, headers, here), read(theirs, path, headers, there)]);
    }
  }
  const loops = Array.from({ length: size }, (_, at) => loop(at));
  return {
    async stop() {
      isStopping = true;
      await Promise.all(loops);
      await Promise.all(pools.map((pool) => pool.destroy()));
    },
  };
}

/** Reads until the session is idle. */
async function read(pool: Pool, path: string, headers: Record<string, string>, seen: Seen): Promise<void> {
  const { body, statusCode } = await pool.request({ method: 'GET', path, headers });
  if (statusCode !== 200) throw new Error(`a stream was answered ${statusCode}`);
  let rest = '';
  for await (const part of body.setEncoding('utf8')) {
    const text = rest + part;
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    const whole = text.slice(0, end);
    for (const [, sent] of whole.matchAll(/"delta":"(\d{7}) "/g)) {
      seen.deltas += 1;
      seen.delays.push((Date.now() - Number(sent) + 10_000_000) % 10_000_000);
    }
    if (whole.includes(IDLE)) break;
  }
}

async function sample(bench: Bench, node: Child, database: pg.Client, here: Seen, there: Seen): Promise<Sample> {
  const look = async () => ({
    serviceMs: (await node.usage()).serviceMs,
    databaseMs: (await bench.usage()).databaseMs,
    wal: Number((await database.query(`select pg_current_wal_insert_lsn() - '0/0' as wal`)).rows[0].wal),
    deltas: here.deltas,
  });
  const before = await look();
  [here.delays, there.delays] = [[], []];
  await sleep(SAMPLE_MS);
  const delays = { here: here.delays, there: there.delays };
  const after = await look();
  const deltas = after.deltas - before.deltas;
  console.error(`  ${Math.round((deltas / SAMPLE_MS) * 1000)} deltas/s`);
  return {
    nodeMicros: ((after.serviceMs - before.serviceMs) * 1000) / deltas,
    databaseMicros: ((after.databaseMs - before.databaseMs) * 1000) / deltas,
    walBytes: (after.wal - before.wal) / deltas,
    ...delays,
  };
}

interface Left {
  segments: number;
  transactions: number;
}

/** For each response, when all have ended. */
async function countResponses(database: pg.Client): Promise<Left> {
  const { rows } = await database.query(`
    select (select count(*) from segments) as segments, (select count(*) from sessions) as sessions,
      pg_snapshot_xmax(pg_current_snapshot())::text as transactions`);
  const [{ segments, sessions, transactions }] = rows as [Record<'segments' | 'sessions' | 'transactions', string>];
  return { segments: Number(segments) / Number(sessions), transactions: Number(transactions) / Number(sessions) };
}

function rowsOf(size: number, samples: readonly Sample[], left: Left): Row[] {
  const row = (name: string, unit: string, target: string, of: (sample: Sample) => number) =>
    rowOf(
      { name: `streamed, ${size}, ${name}`, unit, target },
      samples.map((sample) => ({ ours: of(sample) })),
    );
  const databaseTarget = size >= 200 ? '≤ 4.00' : '≤ 12.0';
  return [
    row('PostgreSQL', 'µs a delta', databaseTarget, ({ databaseMicros }) => databaseMicros),
    row('node', 'µs a delta', '≤ 25.0', ({ nodeMicros }) => nodeMicros),
    row('WAL', 'bytes a delta', '≤ 60', ({ walBytes }) => walBytes),
    row('segments', 'rows a response', '≤ 2', () => left.segments),
    row('transactions', 'a response', '–', () => left.transactions),
    row('delay', 'ms, p50', '–', ({ here }) => quantile(here, 0.5)),
    row('delay', 'ms, p99', '≤ 80', ({ here }) => quantile(here, 0.99)),
    row('delay elsewhere', 'ms, p50', '–', ({ there }) => quantile(there, 0.5)),
    row('delay elsewhere', 'ms, p99', '–', ({ there }) => quantile(there, 0.99)),
  ];
}
