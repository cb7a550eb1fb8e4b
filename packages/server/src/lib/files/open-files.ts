import { readFile } from 'node:fs/promises';
import type { Log } from '../log.ts';

/** How many files and connections this process can have open; undefined where the system does not say. Node raises the soft limit. */
export async function openFileLimit(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const soft = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** The connections that a node can accept. A quarter of the files is for the database and outgoing requests. */
export function connectionsWithin(limit: number | undefined, maxConnections: number): number {
  return limit === undefined ? maxConnections : Math.min(maxConnections, Math.floor(limit * 0.75));
}

export const OPEN_FILES_FIX =
  'Raise the limit of open files (LimitNOFILE of systemd, --ulimit nofile of Docker, ulimit -n), or lower SIGNALBOX_MAX_CONNECTIONS.';

/** Beyond the limit of open files, the system would close connections without a trace, and the database's as well. */
export async function acceptedConnections(
  { maxConnections }: { maxConnections: number },
  log: Pick<Log, 'warn'>,
): Promise<number> {
  const openFiles = await openFileLimit();
  const accepted = connectionsWithin(openFiles, maxConnections);
  if (openFiles !== undefined && openFiles < maxConnections) {
    log.warn(
      { openFiles, accepted, maxConnections },
      `the limit of open files allows fewer connections than SIGNALBOX_MAX_CONNECTIONS. ${OPEN_FILES_FIX}`,
    );
  }
  return accepted;
}
