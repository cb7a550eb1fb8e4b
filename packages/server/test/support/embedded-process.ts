// The program of embedded-service.ts as a process, to be killed, and the server that it runs.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const embeddedProgram = fileURLToPath(new URL('./embedded-service.ts', import.meta.url));

export interface Said {
  url?: string;
  error?: string;
  message?: string;
  stillThere?: boolean;
}

export interface EmbeddedProcess {
  child: ChildProcess;
  /** What it says next. */
  next(): Promise<Said>;
}

export function spawnEmbedded(dataDir: string, options: { uid?: number; port?: number } = {}): EmbeddedProcess {
  const child = spawn(process.execPath, [embeddedProgram, dataDir, ...(options.port ? [String(options.port)] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    ...(options.uid ? { uid: options.uid, gid: options.uid } : {}),
  });
  const lines = createInterface(child.stdout as NonNullable<ChildProcess['stdout']>)[Symbol.asyncIterator]();
  return { child, next: async () => JSON.parse(String((await lines.next()).value)) as Said };
}

export const clusterOf = (dataDir: string, ...path: string[]) => join(dataDir, 'postgres', 'cluster', ...path);

/** The number of the server's process, as it wrote it down; rejects where there is none. */
export async function serverPidOf(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(clusterOf(dataDir, 'postmaster.pid'), 'utf8'), 10);
}

export function isPostgresAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // One that has ended may still wait to be collected, when the process that adopted it is slow to do so.
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
