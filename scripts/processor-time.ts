// The processor time of a process and of all that it started, from Linux's /proc.
import { readdirSync, readFileSync } from 'node:fs';

// The unit of /proc/PID/stat, the same on every Linux.
const MS_PER_TICK = 10;

interface Process {
  pid: number;
  parent: number;
  name: string;
  /** Its own, and of its children that have ended and that it waited for. */
  ms: number;
}

/**
 * Milliseconds of processor time, of the user and of the system, that this process, its descendants that run now and its children
 * that have ended used since they started. What a process used whose parent ended first is not counted. Undefined where there is no
 * /proc.
 */
export function processorMs(): number | undefined {
  const processes = readProcesses();
  return processes && sumOf(processes, process.pid);
}

/** The same, of the children of this process with that name, and of their descendants. */
export function childrenProcessorMs(name: string): number {
  const processes = readProcesses() ?? [];
  const children = processes.filter((child) => child.parent === process.pid && child.name === name);
  return children.reduce((sum, { pid }) => sum + sumOf(processes, pid), 0);
}

function sumOf(processes: readonly Process[], pid: number): number {
  const own = processes.find((one) => one.pid === pid)?.ms ?? 0;
  const children = processes.filter(({ parent }) => parent === pid);
  return children.reduce((sum, child) => sum + sumOf(processes, child.pid), own);
}

function readProcesses(): Process[] | undefined {
  if (process.platform !== 'linux') return undefined;
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    let stat: string;
    try {
      stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
    } catch {
      return []; // It has ended.
    }
    // The name is in parentheses, and can contain any character.
    const [start, end] = [stat.indexOf('('), stat.lastIndexOf(')')];
    const fields = stat.slice(end + 2).split(' ');
    // utime, stime, cutime and cstime of proc_pid_stat(5).
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return [
      { pid: Number(entry), parent: Number(fields[1]), name: stat.slice(start + 1, end), ms: ticks * MS_PER_TICK },
    ];
  });
}
