// From `POST /sessions` with input to the first delta in the stream of its response, one session after another; the model
// responds at once. The limit: the two commits that must precede it, one after the other.
import pg from 'pg';
import { type Benchmark, durations, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent, createSessionClient } from './support/session-client.ts';
import { quantile, rowOf } from './support/table.ts';

const TIMES = 200;

export const firstToken: Benchmark = {
  name: 'first-token',
  async run() {
    const bench = await startBench();
    const client = createSessionClient(bench, await createScriptedAgent(bench), 1);
    const database = new pg.Client(bench.databaseUrl);
    await database.connect();
    await database.query('create table bench_rows (id bigint generated always as identity primary key, body text)');
    const insert = () =>
      database.query({ name: 'insert', text: 'insert into bench_rows (body) values ($1)', values: ['["Hello"]'] });

    const p50 = async (act: () => Promise<unknown>) => quantile(await durations(TIMES, act), 0.5);
    const pairs = await measurePairs(
      () => p50(() => client.openAndReadUntil('"message.chunk"')),
      () =>
        p50(async () => {
          await insert();
          await insert();
        }),
    );
    await database.end();
    await bench.stop();
    return [rowOf({ name: 'first-token', unit: 'ms, p50', target: '≤ 4.00, ≤ 10 ms' }, pairs)];
  },
};
