// Sessions with 50 destinations beside the same sessions with none: nothing may be added to a session. Their filters are those of alerts:
// every record is read and compared, and none is sent.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, type Benchmark, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent, createSessionClient, IDLE, type SessionClient } from './support/session-client.ts';
import { rowOfSamples } from './support/table.ts';

const DESTINATIONS = 50;
const AT_A_TIME = 100;
// Long enough for several garbage collections.
const SAMPLE_MS = 4_000;
// Until a node has claimed them, or knows that they are gone.
const SETTLE_MS = 2_000;

interface Sample {
  perSecond: number;
  /** CPU time of service and database for one session, in milliseconds. */
  processorMs: number;
}

export const destinations: Benchmark = {
  name: 'destinations',
  async run() {
    const bench = await startBench();
    const client = createSessionClient(bench, await createScriptedAgent(bench), AT_A_TIME);
    // Made anew for each sample, so that they have nothing to catch up with.
    const sample = async (count: number) => {
      const ids = await Promise.all(Array.from({ length: count }, (_, n) => create(bench, n)));
      await sleep(SETTLE_MS);
      const result = await sampleOf(client, bench);
      await Promise.all(ids.map((id) => bench.call('DELETE', `/destinations/${id}`)));
      await sleep(SETTLE_MS);
      return result;
    };
    const pairs = await measurePairs(
      () => sample(DESTINATIONS),
      () => sample(0),
    );
    await bench.stop();
    return [
      rowOfSamples(
        { name: 'destinations, sessions', unit: 'sessions/s', target: '≥ 0.97' },
        pairs,
        ({ perSecond }) => perSecond,
      ),
      rowOfSamples(
        { name: 'destinations, CPU time', unit: 'ms a session', target: '≤ 1.03' },
        pairs,
        ({ processorMs }) => processorMs,
      ),
    ];
  },
};

async function create(bench: Bench, n: number): Promise<string> {
  const { destination } = await bench.call<{ destination: { destinationId: string } }>('POST', '/destinations', {
    ...{ name: `Alerts ${n}`, type: 'webhook', url: 'http://127.0.0.1:1/' },
    eventTypes: ['approval.*', 'session.failed', 'budget.*'],
  });
  return destination.destinationId;
}

async function sampleOf(client: SessionClient, bench: Bench): Promise<Sample> {
  const used = async () => {
    const { serviceMs, databaseMs } = await bench.usage();
    return serviceMs + databaseMs;
  };
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
