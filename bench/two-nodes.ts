// 500 sessions run on one node; another node has 5,000 streams, ten of each.
//
// Ours is the time from a chunk's timestamp, set just before its commit, until the last of its ten readers on the other
// node has it; the limit is the same for a reader on the node that runs the session, measured at the same moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { createTalker, many, readStreams } from './fan-out.ts';
import { type Benchmark, startBench, startChild } from './support/harness.ts';
import { quantile, rowOf } from './support/table.ts';

const SESSIONS = 500;
const READERS_THERE = 10;
const READERS_HERE = 1;
const SAMPLES = 5;
const SAMPLE_MS = 4_000;
const SETTLE_MS = 5_000;

export const twoNodes: Benchmark = {
  name: 'two-nodes',
  async run() {
    // It has the database and opens sessions, but runs none.
    const bench = await startBench({
      roles: 'api',
      settings: { SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000' },
    });
    const node = (roles: string) =>
      startChild('service-process.ts', {
        env: {
          DATABASE_URL: bench.databaseUrl,
          SIGNALBOX_PORT: '0',
          SIGNALBOX_MASTER_KEY: bench.masterKey,
          SIGNALBOX_ROLES: roles,
          SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000',
          SIGNALBOX_LOG_LEVEL: 'error',
        },
      });
    const [running, other] = [await node('api,runtime'), await node('api')];
    const agentId = await createTalker(bench);
    const open = async () => {
      const body = { agentId, environment: 'production' };
      return (await bench.call<{ session: { sessionId: string } }>('POST', '/sessions', body)).session.sessionId;
    };
    const sessionIds = await many(SESSIONS, open);
    const taken = { ours: [] as number[], limit: [] as number[] };
    const read = async (url: string, readers: number, heard: (ms: number) => void) => {
      const pool = new Pool(url, { connections: SESSIONS * readers, pipelining: 1, bodyTimeout: 0 });
      await many(SESSIONS, (at) => readStreams(pool, bench.adminKey, sessionIds[at]!, readers, heard));
      return pool;
    };
    const there = await read(other.hello, READERS_THERE, (ms) => taken.ours.push(ms));
    const here = await read(running.hello, READERS_HERE, (ms) => taken.limit.push(ms));

    const content = 'Go on';
    await many(SESSIONS, (at) => bench.call('POST', `/sessions/${sessionIds[at]}/messages`, { content }));
    await sleep(SETTLE_MS);
    const samples: { ours: number; limit: number }[] = [];
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      taken.ours = [];
      taken.limit = [];
      const before = await other.usage();
      await sleep(SAMPLE_MS);
      const cores = ((await other.usage()).serviceMs - before.serviceMs) / SAMPLE_MS;
      console.error(`  ${Math.round((taken.ours.length / SAMPLE_MS) * 1000)} chunks/s, ${cores.toFixed(2)} cores`);
      samples.push({ ours: quantile(taken.ours, 0.99), limit: quantile(taken.limit, 0.99) });
    }
    await Promise.all([here.destroy(), there.destroy()]);
    await other.stop();
    await running.stop();
    await bench.stop();
    return [rowOf({ name: 'two-nodes', unit: 'ms, p99', target: '≤ 50 ms' }, samples)];
  },
};
