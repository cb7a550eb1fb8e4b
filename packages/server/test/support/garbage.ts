// Garbage collection, for tests of what stays in memory.
import { setImmediate as nextIteration } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/**
 * Afterwards `process.memoryUsage()` has what is still referenced. Buffers are freed by another thread: right after one collection, 60
 * MiB of them that nothing referenced were still counted, and after the second at most 1 MiB.
 */
export async function collectGarbage(): Promise<void> {
  collect();
  await nextIteration();
  collect();
}
