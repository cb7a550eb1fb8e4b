// The longest time that the event loop was blocked, in CPU time of its thread: other threads, and other load on the machine, do
// not count.
export interface LoopWatch {
  /** Runs `act` and returns the longest such time during it, in milliseconds of CPU time. */
  during(act: () => Promise<unknown>): Promise<number>;
}

/** Often enough to notice a blocked loop, rarely enough to cost nothing. */
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
        // The last measurement ends here.
        await new Promise<void>((resolve) => setImmediate(resolve));
        beat();
      } finally {
        clearInterval(beats);
      }
      return longest;
    },
  };
}
