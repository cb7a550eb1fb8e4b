// Whether the event loop was blocked for too long, in CPU time of its thread: other threads, and the time of other processes, do not
// count.
import { expect } from 'vitest';

/** Often enough to notice a blocked loop, rarely enough to cost nothing. */
const BEAT_MS = 10;
const MOST_MS = 250;
/**
 * The same, as a number of times that a body of the largest size is parsed and written: a processor that runs others beside this thread
 * needs more time for the same work.
 */
const MOST_BODIES = 30;
/** A garbage collection or first-time compilation may happen during one of them. */
const TRIES = 6;

const BODY = JSON.stringify(Array.from({ length: 48_000 }, (_, index) => ({ [`k${index % 97}`]: `value ${index}` })));

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function mostMs(): number {
  const began = cpuMs();
  for (let times = 0; times < 5; times++) JSON.stringify(JSON.parse(BODY));
  return Math.max(MOST_MS, ((cpuMs() - began) / 5) * MOST_BODIES);
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

/** Fails if the event loop is blocked for more than 250 ms in each of several attempts. */
export async function expectUnblocked(act: () => Promise<unknown>, what?: string): Promise<void> {
  const tried: { ms: number; mostMs: number }[] = [];
  while (tried.length < TRIES) {
    const ms = await longestDuring(act);
    if (ms <= MOST_MS) return;
    tried.push({ ms, mostMs: mostMs() });
    if (ms <= tried.at(-1)!.mostMs) return;
  }
  expect.fail(`${what ? `${what}: ` : ''}the event loop was blocked each time: ${JSON.stringify(tried)}`);
}
