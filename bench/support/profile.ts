// `--profile`: where the CPU time of a benchmark goes. Each process with code of the service writes a `.cpuprofile`, which the
// developer tools of a browser and editors show as a flame graph, and the database counts its statements (`pg_stat_statements`).
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

const SHOWN = 15;
const ROOT = new URL('../../', import.meta.url).href;

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

/** The benchmark that is running; undefined without `--profile`. */
let current: { name: string; directory: string; reports: string[]; processes: number } | undefined;

/** Runs a benchmark, and prints what its processes and its database did. */
export async function profiled<T>(name: string, run: () => Promise<T>): Promise<T> {
  const directory = fileURLToPath(new URL(`../profiles/${name}/`, import.meta.url));
  await mkdir(directory, { recursive: true });
  current = { name, directory, reports: [], processes: 0 };
  // Some benchmarks run a part of the service here, all of them the load.
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  try {
    return await run();
  } finally {
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    await writeFile(join(directory, 'bench.cpuprofile'), JSON.stringify(profile));
    await report(current);
    current = undefined;
  }
}

/** The environment of a process that is profiled. */
export function profileOptions(file: string): Record<string, string> {
  if (!current) return {};
  current.processes += 1;
  const name = `${file.replace('.ts', '')}-${current.processes}.cpuprofile`;
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${current.directory} --cpu-prof-name=${name}` };
}

/** Prepares a database to count its statements. Returns whether it has to be restarted for it. */
export async function countStatements(databaseUrl: string): Promise<boolean> {
  if (!current) return false;
  await query(databaseUrl, `alter system set shared_preload_libraries = 'pg_stat_statements'`);
  return true;
}

export async function startCounting(databaseUrl: string): Promise<void> {
  if (current) await query(databaseUrl, 'create extension if not exists pg_stat_statements');
}

/** Before the database stops. */
export async function reportStatements(databaseUrl: string): Promise<void> {
  if (!current) return;
  const rows = await query<{ calls: string; ms: number; query: string; all_ms: number }>(
    databaseUrl,
    `select calls, total_exec_time as ms, regexp_replace(query, '\\s+', ' ', 'g') as query,
       sum(total_exec_time) over () as all_ms
     from pg_stat_statements order by total_exec_time desc limit ${SHOWN}`,
  );
  const lines = rows.map(
    ({ calls, ms, query: text, all_ms: all }) =>
      `${percent(ms / all)} ${((1000 * ms) / Number(calls)).toFixed(0).padStart(7)} µs × ${calls}  ${text.slice(0, 120)}`,
  );
  current.reports.push(['Statements, by time:', ...lines].join('\n'));
}

async function query<Row extends pg.QueryResultRow>(databaseUrl: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

async function report({ name, directory, reports }: NonNullable<typeof current>): Promise<void> {
  for (const file of await readdir(directory)) {
    const profile = JSON.parse(await readFile(join(directory, file), 'utf8')) as CpuProfile;
    console.error(`\n${name}, ${file}:\n${ownTimes(profile).join('\n')}`);
  }
  for (const one of reports) console.error(`\n${one}`);
  console.error(`\nThe profiles are in ${directory}`);
}

/** The functions that took most of the time, without those that they called. */
function ownTimes({ nodes, samples, timeDeltas }: CpuProfile): string[] {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const micros = new Map<string, number>();
  for (const [at, id] of samples.entries()) {
    const name = names.get(id)!;
    if (name !== '(idle)') micros.set(name, (micros.get(name) ?? 0) + timeDeltas[at]!);
  }
  const all = [...micros.values()].reduce((sum, one) => sum + one, 0);
  return [...micros]
    .sort(([, a], [, b]) => b - a)
    .slice(0, SHOWN)
    .map(([name, own]) => `${percent(own / all)}  ${name}`);
}

function nameOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  if (url === '') return functionName;
  const file = url.replace(ROOT, '').replace(/^.*node_modules\//, '');
  return `${functionName || 'anonymous'} ${file}:${lineNumber + 1}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1).padStart(5)} %`;
}
