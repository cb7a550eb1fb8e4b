// How long `start` takes until the service responds, and what it uses when nothing happens. `start` runs on existing data,
// `first-start` in an empty directory, with nothing compiled. The limit: its PostgreSQL on the same data, alone.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../packages/server/src/db/embedded.ts';
import { createLog } from '../packages/server/src/lib/log.ts';
import { type Benchmark, type Child, measurePairs, startChild } from './support/harness.ts';
import { rowOf } from './support/table.ts';

// Until all deferred work of a start is done.
const SETTLE_MS = 5_000;
const log = createLog({ level: 'silent' });

export const start: Benchmark = {
  name: 'start',
  async run() {
    const directory = await mkdtemp(join(tmpdir(), 'signalbox-bench-'));
    const dataDir = join(directory, 'data');
    const service = () =>
      startChild('service-process.ts', {
        env: {
          SIGNALBOX_DATA_DIR: dataDir,
          SIGNALBOX_PORT: '0',
          // The command has a compile cache too.
          NODE_COMPILE_CACHE: join(directory, 'compiled'),
        },
        logFile: join(directory, 'service.log'),
      });

    const first = await timed(service);
    await first.started.stop();
    let residentMb = 0;
    const pairs = await measurePairs(
      async () => {
        const { ms, started } = await timed(service);
        if (residentMb === 0) residentMb = await idleMb(started);
        await started.stop();
        return ms;
      },
      async () => {
        const { ms, started } = await timed(() => startEmbeddedPostgres(dataDir, log));
        await started.stop();
        return ms;
      },
    );
    await rm(directory, { recursive: true, force: true });
    return [
      rowOf({ name: 'start', unit: 'ms', target: '≤ 1 s over it' }, pairs),
      rowOf({ name: 'first-start', unit: 'ms', target: '≤ 5 s' }, [{ ours: first.ms }]),
      rowOf({ name: 'idle-memory', unit: 'MB', target: '≤ 150 MB' }, [{ ours: residentMb }]),
    ];
  },
};

async function timed<T>(act: () => Promise<T>): Promise<{ ms: number; started: T }> {
  const begin = performance.now();
  const started = await act();
  return { ms: performance.now() - begin, started };
}

async function idleMb(service: Child): Promise<number> {
  await sleep(SETTLE_MS);
  return (await service.usage()).residentMb;
}
