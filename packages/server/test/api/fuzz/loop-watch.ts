// How long the event loop was held at a stretch, by the CPU time of its thread: a machine that is busy with something else does
// not count, and neither do other threads.
export interface LoopWatch {
  /** Runs `act` and returns the longest stretch meanwhile, in milliseconds of CPU time. */
  during(act: () => Promise<unknown>): Promise<number>;
}

/** Often enough to notice a stretch, rarely enough to cost nothing. */
const BEAT_MS = 10;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export function createLoopWatch(): LoopWatch {
  return {
    async during(act) {
      let [longest, last] = [0, cpuMs()];
      const beat = () => {
        const now = cpuMs();
        longest = Math.max(longest, now - last);
        last = now;
      };
      const beats = setInterval(beat, BEAT_MS);
      try {
        await act();
        // What began last has its end here.
        await new Promise<void>((resolve) => setImmediate(resolve));
        beat();
      } finally {
        clearInterval(beats);
      }
      return longest;
    },
  };
}
