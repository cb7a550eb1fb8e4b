// The worker of this node, as whoever begins a turn sees it. It is given the Session in the very transaction that begins the
// turn, so that nobody has to find and claim it afterwards.
//
// Nothing rests on it. Without a worker on the node, or without room, the turn is written as one that any worker may claim. A
// Session whose worker never heard that it was given one (the node died, the answer to the commit was lost) names it on its
// row, and is found there like every other.
import type { Operation } from '../../sessions/state/operations.ts';
import type { SessionRow } from '../../sessions/state/session.ts';
import type { TranscriptEntry } from '../../sessions/state/transcript.ts';

/** A Session that the worker was given, as its row is after the commit. */
export interface LocalStart {
  row: SessionRow;
  /** Of the turn that begins. */
  operations: Operation[];
  /** All of it; undefined where the worker has to read it. */
  transcript?: TranscriptEntry[];
}

export interface LocalRunner {
  readonly nodeId: string;
  /** For one more Session of the organization. */
  hasRoom(organizationId: string): boolean;
  /** After the commit that put the worker's id on the row and moved the epoch on. */
  take(given: LocalStart): void;
}

export interface LocalRunners {
  /** Returns how to leave. */
  join(worker: LocalRunner): () => void;
  /** One that has room for a Session of the organization. */
  withRoom(organizationId: string): LocalRunner | undefined;
}

export function createLocalRunners(): LocalRunners {
  const workers = new Set<LocalRunner>();
  return {
    join(worker) {
      workers.add(worker);
      return () => workers.delete(worker);
    },
    withRoom: (organizationId) => [...workers].find((worker) => worker.hasRoom(organizationId)),
  };
}
