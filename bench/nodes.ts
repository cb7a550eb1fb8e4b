// What a second node adds: sessions per second of two nodes, beside those of one. Each node may use a part of a core, as a container
// with a CPU limit; so may PostgreSQL. The load has the rest of the machine.

import { type CpuQuota, limitCpu, processesOfDatabase } from './support/cpu-quota.ts';
import { type Benchmark, type Child, measurePairs, startBench, startChild } from './support/harness.ts';
import { createScriptedAgent, createSessionClient, IDLE, type SessionClient } from './support/session-client.ts';
import { rowOf } from './support/table.ts';

const NODE_CORES = 0.25;
const DATABASE_CORES = 0.7;
/** For each node: as many as keep it busy. */
const AT_A_TIME = 30;
const SAMPLE_MS = 4_000;

export const nodes: Benchmark = {
  name: 'nodes',
  async run() {
    // It has the database, and its share of the load is nothing.
    const bench = await startBench({ roles: 'api' });
    const agentId = await createScriptedAgent(bench);
    const start = () =>
      startChild('service-process.ts', {
        env: {
          DATABASE_URL: bench.databaseUrl,
          SIGNALBOX_PORT: '0',
          SIGNALBOX_MASTER_KEY: bench.masterKey,
          SIGNALBOX_LOG_LEVEL: 'error',
        },
      });
    const both: Child[] = [await start(), await start()];
    const quotas = await Promise.all([
      limitCpu('database', await processesOfDatabase(bench.dataDir), DATABASE_CORES),
      ...both.map(({ pid }, at) => limitCpu(`node-${at}`, [pid], NODE_CORES)),
    ]);
    const isLimited = quotas.every((quota) => quota !== undefined);
    const clients = both.map(({ hello }) =>
      createSessionClient({ url: hello, adminKey: bench.adminKey }, agentId, AT_A_TIME),
    );
    const pairs = isLimited
      ? await measurePairs(
          () => ratePerSecond(clients),
          () => ratePerSecond(clients.slice(0, 1)),
        )
      : [];
    for (const node of both) await node.stop();
    await bench.stop();
    await Promise.all(quotas.map((quota: CpuQuota | undefined) => quota?.remove()));
    if (!isLimited) {
      console.error('  Not measured: this needs permission to create Linux control groups. Run it as root.');
      return [];
    }
    return [rowOf({ name: 'nodes, two and one', unit: 'sessions/s', target: '≥ 1.70' }, pairs)];
  },
};

async function ratePerSecond(clients: readonly SessionClient[]): Promise<number> {
  const begin = performance.now();
  let done = 0;
  const loads = clients.flatMap((client) => Array.from({ length: AT_A_TIME }, () => client));
  await Promise.all(
    loads.map(async (client) => {
      while (performance.now() - begin < SAMPLE_MS) {
        await client.openAndReadUntil(IDLE);
        done += 1;
      }
    }),
  );
  return (done / (performance.now() - begin)) * 1000;
}
