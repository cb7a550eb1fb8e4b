// Closes the connections of clients that do not read. The service waits for a slow client, and unread-bound.ts limits
// what waits in memory for it. A client that takes nothing is disconnected, so that it keeps neither memory nor a slot forever.
import type { Socket } from 'node:net';
import { OVER } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import { onceClosed } from '../connection/closed.ts';

export interface StalledReaders {
  /** Watches a connection until it is closed. */
  watch(connection: Socket): void;
  stop(): Promise<void>;
}

const CHECK_EVERY_MS = 10_000;
/** For a client that takes nothing. */
const STALLED_MS = 60_000;
// Node reports only whole writes, and a response may be a single write of several MiB: a slow connection gets this much longer.
const LEAST_BYTES_A_SECOND = 8 * 1024;

interface WatchedConnection {
  readonly connection: Socket;
  /** At the last check. */
  takenBytes: number;
  /** When `takenBytes` was first seen. */
  since: number;
}

export function createStalledReaders(clock: Clock): StalledReaders {
  const watched = new Set<WatchedConnection>();
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(CHECK_EVERY_MS, stopping.signal).catch(() => {});
      const now = clock.now().getTime();
      for (const entry of watched) check(entry, now);
    }
  }

  function check(entry: WatchedConnection, now: number): void {
    const { connection } = entry;
    const { writableLength } = connection;
    const takenBytes = connection.bytesWritten - writableLength;
    if (writableLength === 0 || takenBytes !== entry.takenBytes) {
      entry.takenBytes = takenBytes;
      entry.since = now;
    } else if (now - entry.since >= STALLED_MS + (writableLength / LEAST_BYTES_A_SECOND) * 1000) {
      connection.destroy();
    }
  }

  const running = run();
  return {
    watch(connection) {
      const entry = { connection, takenBytes: -1, since: 0 };
      watched.add(entry);
      onceClosed(connection, () => watched.delete(entry));
    },
    async stop() {
      stopping.abort(OVER);
      await running;
    },
  };
}
