// A turn that begins by an API call belongs to this node from its first commit, if the node runs sessions and has room: the
// transaction that begins the turn also assigns the session, so no node has to find and claim it.
//
// Correctness does not depend on it. If the node has no room, any node may claim the turn. If the runner is never notified (the
// node died, or the acknowledgement of the commit was lost), the session names a node that does not run it, and a search finds it.
import type { Operation } from './operations.ts';
import type { SessionRow } from './session.ts';
import type { TranscriptEntry } from './transcript.ts';

/** A session that was assigned to this node, with its row as it is after the commit. */
export interface LocalStart {
  row: SessionRow;
  /** The operations of the turn that begins. */
  operations: Operation[];
  /** The whole transcript; undefined if the runner has to read it. */
  transcript?: TranscriptEntry[];
}

export interface LocalRunner {
  readonly nodeId: string;
  /** For one more session of the organization. */
  hasRoom(organizationId: string): boolean;
  /** Called after the commit that put the node's id on the row and raised the epoch. */
  take(start: LocalStart): void;
}

export interface LocalRunners {
  /** Returns a function that leaves. */
  join(runner: LocalRunner): () => void;
  /** A runner that has room for a session of the organization. */
  withRoom(organizationId: string): LocalRunner | undefined;
}

export function createLocalRunners(): LocalRunners {
  const runners = new Set<LocalRunner>();
  return {
    join(runner) {
      runners.add(runner);
      return () => runners.delete(runner);
    },
    withRoom: (organizationId) => [...runners].find((runner) => runner.hasRoom(organizationId)),
  };
}
