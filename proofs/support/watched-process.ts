// The service of the soak, which reports its memory after a garbage collection on request. Needs `--expose-gc`.
import { setImmediate as nextIteration } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { systemClock } from '../../packages/server/src/lib/clock.ts';
import { readConfig, startService } from '../../packages/server/src/main.ts';

const LONGEST_SLEEP_MS = 60_000;
// The spaces of the heap with compiled code.
const CODE = /^(code|trusted)/;

/** Hourly work is done every minute, so that retention deletes while the soak runs. */
const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, LONGEST_SLEEP_MS), signal),
};

const service = await startService(readConfig(), { clock });
async function stop(): Promise<void> {
  await service.stop();
  process.exit();
}
process.once('SIGTERM', stop);
// The parent process is gone.
process.once('disconnect', stop);
process.on('message', async () => {
  // What the first collection finalizes, the second one frees.
  globalThis.gc!();
  await nextIteration();
  globalThis.gc!();
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const code = getHeapSpaceStatistics()
    .filter(({ space_name: name }) => CODE.test(name))
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0);
  process.send!({
    resident: rss,
    objects: heapUsed - code,
    code,
    external,
    arrayBuffers,
    cpuSeconds: (user + system) / 1e6,
    resources: process.getActiveResourcesInfo(),
  });
});
process.send!(service.url);
