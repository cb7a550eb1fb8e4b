// Whether the event loop was blocked for too long, in CPU time of its thread: other threads, and the time of other processes, do not
// count. A machine that is slower than the reference gets as many times longer: the same work right then is compared with it.
import { expect } from 'vitest';

/** Often enough to notice a blocked loop, rarely enough to cost nothing. */
const BEAT_MS = 10;
const MOST_MS = 250;
/** What the work of `slowness` takes on the machine for which MOST_MS holds. */
const REFERENCE_MS = 150;
/** A garbage collection or first-time compilation may happen during one of them. */
const TRIES = 6;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `row ${id}` }));

/** How many times slower than the reference this machine is now; at least 1. */
function slowness(): number {
  const before = cpuMs();
  for (let times = 0; times < 20; times++) JSON.parse(JSON.stringify(rows));
  return Math.max(1, (cpuMs() - before) / REFERENCE_MS);
}

/** The longest time without a turn of the event loop, in milliseconds of CPU time. */
async function longestDuring(act: () => Promise<unknown>): Promise<number> {
  let [longest, last] = [0, cpuMs()];
  const beat = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const beats = setInterval(beat, BEAT_MS);
  try {
    await act();
    // The last measurement ends here.
    await new Promise<void>((resolve) => setImmediate(resolve));
    beat();
  } finally {
    clearInterval(beats);
  }
  return longest;
}

/** Fails if the event loop is blocked for more than 250 ms of the reference machine in each of several attempts. `before` each, what is not measured. */
export async function expectUnblocked(
  act: () => Promise<unknown>,
  { what, before }: { what?: string; before?(): void } = {},
): Promise<void> {
  const tried: number[] = [];
  while (tried.length < TRIES) {
    before?.();
    const ms = await longestDuring(act);
    if (ms <= MOST_MS || ms <= MOST_MS * slowness()) return;
    tried.push(Math.round(ms));
  }
  expect.fail(`${what ? `${what}: ` : ''}the event loop was blocked each time, for ${tried.join(', ')} ms`);
}
