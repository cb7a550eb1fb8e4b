import { readFile } from 'node:fs/promises';

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
