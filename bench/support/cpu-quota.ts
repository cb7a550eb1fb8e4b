// Limits processes to a share of a core, as a container with a CPU limit is, by Linux control groups (version 1 or 2).
import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';
// Short, so that a process does not stand still for long once its share is used up.
const PERIOD_MICROS = 10_000;

export interface CpuQuota {
  /** The process must have ended. */
  remove(): Promise<void>;
}

/** Includes the processes that these start later. Undefined if this user may not create control groups. */
export async function limitCpu(name: string, pids: readonly number[], cores: number): Promise<CpuQuota | undefined> {
  const isFirstVersion = await stat(join(ROOT, 'cpu')).catch(() => undefined);
  const group = join(ROOT, isFirstVersion ? 'cpu' : '', `signalbox-bench-${process.pid}-${name}`);
  const quota = String(Math.round(cores * PERIOD_MICROS));
  try {
    await mkdir(group);
    if (isFirstVersion) {
      await writeFile(join(group, 'cpu.cfs_period_us'), String(PERIOD_MICROS));
      await writeFile(join(group, 'cpu.cfs_quota_us'), quota);
    } else {
      await writeFile(join(group, 'cpu.max'), `${quota} ${PERIOD_MICROS}`);
    }
    for (const pid of pids) await writeFile(join(group, 'cgroup.procs'), String(pid));
  } catch {
    await rmdir(group).catch(() => {});
    return undefined;
  }
  return { remove: () => rmdir(group) };
}

/** The server of a data directory and its processes. */
export async function processesOfDatabase(dataDir: string): Promise<number[]> {
  const server = await serverPid(dataDir);
  const children = await readFile(`/proc/${server}/task/${server}/children`, 'utf8').catch(() => '');
  return [server, ...children.split(' ')].filter(Boolean).map(Number);
}

export async function serverPid(dataDir: string): Promise<string> {
  const [pid = ''] = (await readFile(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8')).split('\n');
  return pid;
}
