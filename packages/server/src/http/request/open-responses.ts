// Answers that would take as long as anybody waits for them: streams and long polls. A node that stops ends them.
import type { Clock } from '../../lib/clock.ts';

export interface OpenResponses {
  /** `end` is called at most once. Returns how to take the answer out again when it is over. */
  add(end: () => void): () => void;
  endAll(): void;
  /** Ends those that are open now one after another, so that their callers do not come back elsewhere all at once. Takes so long. */
  endOver(ms: number): Promise<void>;
}

const STEPS = 20;

export function createOpenResponses(clock: Clock): OpenResponses {
  const open = new Set<() => void>();

  function end(answer: () => void): void {
    if (open.delete(answer)) answer();
  }

  return {
    add(answer) {
      // A function of its own for each: two answers may share one.
      const own = () => answer();
      open.add(own);
      return () => void open.delete(own);
    },
    endAll() {
      for (const answer of open) end(answer);
    },
    async endOver(ms) {
      const begun = [...open];
      for (let step = 1; step <= STEPS; step += 1) {
        await clock.sleep(ms / STEPS);
        const upTo = Math.ceil((begun.length * step) / STEPS);
        for (const answer of begun.slice(Math.ceil((begun.length * (step - 1)) / STEPS), upTo)) end(answer);
      }
    },
  };
}
