// What waits for a reader, in this node's memory. A reader that is slow is waited for, and what is written for it meanwhile is
// bounded (unread-bound.ts); the connection of one that takes nothing is closed. So neither memory nor a place among the requests under way is
// held indefinitely by a caller that does not read the response.
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import { onceClosed } from './closed.ts';

export interface StalledReaders {
  /** Watches an answer until it is closed. */
  watch(response: ServerResponse): void;
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 10_000;
/** For a reader that takes nothing. */
const STALLED_MS = 60_000;
// Node tells only of whole writes, and an answer may be a single one of some MiB: a slow line has this long for it.
const LEAST_BYTES_A_SECOND = 8 * 1024;

interface WatchedResponse {
  readonly response: ServerResponse;
  /** Of its connection, when it was looked at last. */
  takenBytes: number;
  /** When that was first seen to be so. */
  since: number;
}

export function createStalledReaders(clock: Clock): StalledReaders {
  const answers = new Set<WatchedResponse>();
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, stopping.signal).catch(() => {});
      const now = clock.now().getTime();
      for (const answer of answers) look(answer, now);
    }
  }

  function look(answer: WatchedResponse, now: number): void {
    const { response } = answer;
    const { socket } = response;
    if (!socket) return;
    const takenBytes = socket.bytesWritten - socket.writableLength;
    if (response.writableLength === 0 || takenBytes !== answer.takenBytes) {
      answer.takenBytes = takenBytes;
      answer.since = now;
    } else if (now - answer.since >= STALLED_MS + (response.writableLength / LEAST_BYTES_A_SECOND) * 1000) {
      socket.destroy();
    }
  }

  const running = run();
  return {
    watch(response) {
      const answer = { response, takenBytes: -1, since: 0 };
      answers.add(answer);
      onceClosed(response, () => answers.delete(answer));
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
