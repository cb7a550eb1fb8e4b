// Where tests keep their temporary files: in memory, if there is enough. Most tests create a database, which is hundreds of files, and
// creating and deleting these was more than half of the CPU time of the tests.
import { readFileSync, statfsSync } from 'node:fs';

const PLACE = '/dev/shm';
// The tests need less than half of it.
const ENOUGH_BYTES = 8 * 1024 ** 3;

/** `TMPDIR` for tests; nothing if it is set, or if there is no such place. */
export function memoryDirectory() {
  if (process.env.TMPDIR) return {};
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    const [, , type, options = ''] = mounts.map((line) => line.split(' ')).find(([, place]) => place === PLACE) ?? [];
    const { bavail, bsize } = statfsSync(PLACE);
    const bytes = Math.min(bavail * bsize, process.availableMemory());
    // Some tests install programs there, and run them.
    const isUsable = type === 'tmpfs' && !options.split(',').includes('noexec') && bytes >= ENOUGH_BYTES;
    return isUsable ? { TMPDIR: PLACE } : {};
  } catch {
    return {};
  }
}
