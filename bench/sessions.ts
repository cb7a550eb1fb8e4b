// Sessions per second, from `POST /sessions` with input until the stream in its response reports `idle`, with a model that responds at once in 20
// deltas. The limit: the commits per second of the database for as many clients, divided by the commits that one session needs.
import pg from 'pg';
import { type Bench, type Benchmark, measurePairs, ratePerSecond, startBench } from './support/harness.ts';
import { createScriptedAgent, createSessionClient, IDLE, type SessionClient } from './support/session-client.ts';
import { type Row, rowOf } from './support/table.ts';

const AT_A_TIME = [10, 100];
// As many connections as the service has.
const MAX_CONNECTIONS = 20;
const COUNTED_SESSIONS = 100;

export const sessions: Benchmark = {
  name: 'sessions',
  async run() {
    const bench = await startBench();
    const agentId = await createScriptedAgent(bench);
    const database = new pg.Pool({ connectionString: bench.databaseUrl, max: MAX_CONNECTIONS });
    await database.query('create table bench_rows (id bigint generated always as identity primary key, body text)');
    const commits = await commitsOfOne(createSessionClient(bench, agentId, 1), database);
    console.error(`  a Session commits ${commits.toFixed(1)} transactions`);

    const rows: Row[] = [];
    for (const atATime of AT_A_TIME) rows.push(await measure(bench, agentId, database, atATime, commits));
    await database.end();
    await bench.stop();
    return rows;
  },
};

async function measure(bench: Bench, agentId: string, database: pg.Pool, atATime: number, commits: number) {
  const client = createSessionClient(bench, agentId, atATime);
  const insert = { name: 'insert', text: 'insert into bench_rows (body) values ($1)', values: ['["Hello"]'] };
  const pairs = await measurePairs(
    () => ratePerSecond(atATime, () => client.openAndReadUntil(IDLE)),
    async () => (await ratePerSecond(Math.min(atATime, MAX_CONNECTIONS), () => database.query(insert))) / commits,
  );
  const target = atATime === 100 ? '≥ 0.50, ≥ 300/s' : '≥ 0.50';
  return rowOf({ name: `sessions, ${atATime} at a time`, unit: 'sessions/s', target }, pairs);
}

/**
 * The transactions of one session that write. PostgreSQL numbers these at once and without gaps. Its counter of commits lags
 * behind by seconds, and includes reads, which wait for no disk.
 */
async function commitsOfOne(client: SessionClient, database: pg.Pool): Promise<number> {
  const next = async () => {
    const { rows } = await database.query('select pg_snapshot_xmax(pg_current_snapshot())::text as next');
    return Number(rows[0].next);
  };
  await client.openAndReadUntil(IDLE);
  const before = await next();
  for (let at = 0; at < COUNTED_SESSIONS; at += 1) await client.openAndReadUntil(IDLE);
  return ((await next()) - before) / COUNTED_SESSIONS;
}
