// Responses that stay open for as long as the client waits: streams and long polls. A node that stops ends them.
import type { Clock } from '../../lib/clock.ts';

export interface OpenResponse {
  end(): void;
}

export interface OpenResponses {
  /** It is ended at most once. */
  add(response: OpenResponse): void;
  /** It has ended. */
  remove(response: OpenResponse): void;
  endAll(): void;
  /** Ends those that are open now, spread over `ms`, so that their clients do not all reconnect to other nodes at once. */
  endOver(ms: number): Promise<void>;
}

const STEPS = 20;

export function createOpenResponses(clock: Clock): OpenResponses {
  const open = new Set<OpenResponse>();

  function end(response: OpenResponse): void {
    if (open.delete(response)) response.end();
  }

  return {
    add: (response) => void open.add(response),
    remove: (response) => void open.delete(response),
    endAll() {
      for (const response of open) end(response);
    },
    async endOver(ms) {
      const begun = [...open];
      for (let step = 1; step <= STEPS; step += 1) {
        await clock.sleep(ms / STEPS);
        const upTo = Math.ceil((begun.length * step) / STEPS);
        for (const response of begun.slice(Math.ceil((begun.length * (step - 1)) / STEPS), upTo)) end(response);
      }
    },
  };
}
