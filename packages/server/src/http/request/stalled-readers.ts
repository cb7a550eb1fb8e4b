// Closes the connections of clients that do not read. The service waits for a slow client, and unread-bound.ts limits
// what waits in memory for it. A client that takes nothing is disconnected, so that it keeps neither memory nor a slot forever.
import type { ServerResponse } from 'node:http';
import { OVER } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import { onceClosed } from './closed.ts';

export interface StalledReaders {
  /** Watches a response until it is closed. */
  watch(response: ServerResponse): void;
  stop(): Promise<void>;
}

const CHECK_EVERY_MS = 10_000;
/** For a client that takes nothing. */
const STALLED_MS = 60_000;
// Node reports only whole writes, and a response may be a single write of several MiB: a slow connection gets this much longer.
const LEAST_BYTES_A_SECOND = 8 * 1024;

interface WatchedResponse {
  readonly response: ServerResponse;
  /** By its connection, at the last check. */
  takenBytes: number;
  /** When `takenBytes` was first seen. */
  since: number;
}

export function createStalledReaders(clock: Clock): StalledReaders {
  const watched = new Set<WatchedResponse>();
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(CHECK_EVERY_MS, stopping.signal).catch(() => {});
      const now = clock.now().getTime();
      for (const entry of watched) check(entry, now);
    }
  }

  function check(entry: WatchedResponse, now: number): void {
    const { response } = entry;
    const { socket } = response;
    if (!socket) return;
    const takenBytes = socket.bytesWritten - socket.writableLength;
    if (response.writableLength === 0 || takenBytes !== entry.takenBytes) {
      entry.takenBytes = takenBytes;
      entry.since = now;
    } else if (now - entry.since >= STALLED_MS + (response.writableLength / LEAST_BYTES_A_SECOND) * 1000) {
      socket.destroy();
    }
  }

  const running = run();
  return {
    watch(response) {
      const entry = { response, takenBytes: -1, since: 0 };
      watched.add(entry);
      onceClosed(response, () => watched.delete(entry));
    },
    async stop() {
      stopping.abort(OVER);
      await running;
    },
  };
}
