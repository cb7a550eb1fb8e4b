// Sessions beside their floor: a bare program that does the same requests, statements and commits, and keeps no promise
// (support/floor-process.ts). What Signalbox takes more is its overhead: sessions per second, and the CPU time of the service
// and its database for each.
import { type Bench, type Benchmark, type Child, measurePairs, startBench, startChild } from './support/harness.ts';
import { createScriptedAgent, createSessionClient, IDLE, type SessionClient } from './support/session-client.ts';
import { rowOfSamples } from './support/table.ts';

const AT_A_TIME = 100;
// Long enough for several garbage collections.
const SAMPLE_MS = 3_000;

interface Sample {
  perSecond: number;
  /** CPU time of program and database for one session, in milliseconds. */
  processorMs: number;
}

export const floor: Benchmark = {
  name: 'floor',
  async run() {
    const bench = await startBench();
    const client = createSessionClient(bench, await createScriptedAgent(bench), AT_A_TIME);
    const { DATABASE_URL, SECRET } = { DATABASE_URL: bench.databaseUrl, SECRET: bench.adminKey };
    const bare = await startChild('floor-process.ts', { env: { DATABASE_URL, SECRET } });
    const bareClient = createSessionClient({ url: bare.hello, adminKey: SECRET }, 'agt_floor', AT_A_TIME);
    const pairs = await measurePairs(
      () => sampleOf(client, bench, bench),
      () => sampleOf(bareClient, bare, bench),
    );
    await bare.stop();
    await bench.stop();
    return [
      rowOfSamples(
        { name: 'floor, sessions', unit: 'sessions/s', target: '≥ 0.60' },
        pairs,
        ({ perSecond }) => perSecond,
      ),
      rowOfSamples(
        { name: 'floor, CPU time', unit: 'ms a session', target: '≤ 1.60' },
        pairs,
        ({ processorMs }) => processorMs,
      ),
    ];
  },
};

/** `program`: what the client calls. The database is that of `bench` for both. */
async function sampleOf(client: SessionClient, program: Pick<Child, 'usage'>, bench: Bench): Promise<Sample> {
  const used = async () => (await program.usage()).serviceMs + (await bench.usage()).databaseMs;
  const before = await used();
  const begin = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (performance.now() - begin < SAMPLE_MS) {
        await client.openAndReadUntil(IDLE);
        done += 1;
      }
    }),
  );
  const seconds = (performance.now() - begin) / 1000;
  return { perSecond: done / seconds, processorMs: ((await used()) - before) / done };
}
