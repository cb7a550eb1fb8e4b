// Runs program.ts as a process that tests can kill, and its server.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const program = fileURLToPath(new URL('./program.ts', import.meta.url));

interface Said {
  url?: string;
  error?: string;
  message?: string;
  stillThere?: boolean;
}

export interface PostgresProcess {
  child: ChildProcess;
  /** Its next line of output. */
  next(): Promise<Said>;
}

export function spawnPostgres(directory: string, options: { uid?: number; port?: number } = {}): PostgresProcess {
  const child = spawn(process.execPath, [program, directory, ...(options.port ? [String(options.port)] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    ...(options.uid ? { uid: options.uid, gid: options.uid } : {}),
  });
  const lines = createInterface(child.stdout as NonNullable<ChildProcess['stdout']>)[Symbol.asyncIterator]();
  return { child, next: async () => JSON.parse(String((await lines.next()).value)) as Said };
}

export const clusterOf = (directory: string, ...path: string[]) => join(directory, 'cluster', ...path);

/** The id of the server's process, from its `postmaster.pid`; rejects if there is none. */
export async function serverPidOf(directory: string): Promise<number> {
  return Number.parseInt(await readFile(clusterOf(directory, 'postmaster.pid'), 'utf8'), 10);
}

export function isPostgresAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that has ended is a zombie until its parent, or the process that adopted it, collects it.
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
