// From `POST /sessions` with input to the first delta in the stream of its response, one session after another; the model
// responds at once. The limit: the two commits that must precede it, one after the other. The floor: a bare program that does the
// same requests, statements and commits (support/floor-process.ts).
import pg from 'pg';
import { type Benchmark, durations, measurePairs, startBench, startChild } from './support/harness.ts';
import { createScriptedAgent, createSessionClient, type SessionClient } from './support/session-client.ts';
import { quantile, rowOf } from './support/table.ts';

const TIMES = 200;

export const firstToken: Benchmark = {
  name: 'first-token',
  async run() {
    const bench = await startBench();
    const client = createSessionClient(bench, await createScriptedAgent(bench), 1);
    const settings = { DATABASE_URL: bench.databaseUrl, SECRET: bench.adminKey };
    const bare = await startChild('floor-process.ts', { env: settings });
    const bareClient = createSessionClient({ url: bare.hello, adminKey: bench.adminKey }, 'agt_floor', 1);
    const database = new pg.Client(bench.databaseUrl);
    await database.connect();
    await database.query('create table bench_rows (id bigint generated always as identity primary key, body text)');
    const insert = () =>
      database.query({ name: 'insert', text: 'insert into bench_rows (body) values ($1)', values: ['["Hello"]'] });

    const p50 = async (act: () => Promise<unknown>) => quantile(await durations(TIMES, act), 0.5);
    const firstDelta = (of: SessionClient) => p50(() => of.openAndReadUntil('"message.chunk"'));
    const pairs = await measurePairs(
      () => firstDelta(client),
      async () => ({
        commits: await p50(async () => {
          await insert();
          await insert();
        }),
        floor: await firstDelta(bareClient),
      }),
    );
    await database.end();
    await bare.stop();
    await bench.stop();
    const ofCommits = pairs.map(({ ours, limit: { commits } }) => ({ ours, limit: commits }));
    const ofFloor = pairs.map(({ ours, limit: { floor } }) => ({ ours, limit: floor }));
    return [
      rowOf({ name: 'first-token', unit: 'ms, p50', target: '≤ 4.00, ≤ 10 ms' }, ofCommits),
      rowOf({ name: 'first-token, floor', unit: 'ms, p50', target: '≤ 1.60' }, ofFloor),
    ];
  },
};
