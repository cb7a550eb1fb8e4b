// Threads that judge schemas, and are ended if they take too long: nothing else stops a regular expression. They are started when
// the first is needed, and end when none was for a while.
//
// The organizations that wait take turns, and one has one thread at a time: whatever its schemas do, those of others go on.
import { Worker } from 'node:worker_threads';
import type { Task } from './judge.ts';

/** What is wrong, in words; undefined if nothing is; `STOPPED` if there was no time to tell. */
export type Outcome = string | undefined | typeof STOPPED;
export const STOPPED = Symbol('stopped');

/** As few as keep one organization from stopping another: the event loop needs the cores too. */
const MAX_THREADS = 2;
/** For all tasks of a job. An honest schema takes far less than a millisecond. */
const JOB_MAX_MS = 1_000;
const IDLE_MS = 30_000;
/** So a schema takes no more memory than this either. */
const MEMORY = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

interface Job {
  readonly organizationId: string;
  readonly tasks: readonly Task[];
  readonly outcomes: Outcome[];
  end(): void;
}

/** The organization that has waited longest is first. */
const waiting = new Map<string, Job[]>();
const served = new Set<string>();
const idle: Worker[] = [];
let threads = 0;

/** In order. Those after the one that took too long are `STOPPED` as well. Never throws. */
export async function runInThread(organizationId: string, tasks: readonly Task[]): Promise<Outcome[]> {
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const job: Job = { organizationId, tasks, outcomes: [], end };
  waiting.set(organizationId, [...(waiting.get(organizationId) ?? []), job]);
  if (threads < MAX_THREADS) void serve();
  await promise;
  return tasks.map((_, index) => (index < job.outcomes.length ? job.outcomes[index] : STOPPED));
}

/** Runs jobs for as long as there are some, in a thread. */
async function serve(): Promise<void> {
  threads += 1;
  let thread: Worker | undefined;
  for (let job = nextJob(); job; job = nextJob()) {
    served.add(job.organizationId);
    try {
      thread ??= idle.pop() ?? (await start());
      if (!(await run(thread, job))) {
        // A pattern that is being compiled is not interrupted, so the thread counts until it is gone.
        const ended = thread.terminate();
        thread = undefined;
        await ended;
      }
    } catch {
      // It could not be started; what it was to judge is not judged.
      thread = undefined;
    }
    served.delete(job.organizationId);
    job.end();
  }
  threads -= 1;
  if (thread) rest(thread);
}

function nextJob(): Job | undefined {
  const found = [...waiting.keys()].find((organizationId) => !served.has(organizationId));
  if (found === undefined) return undefined;
  const [job, ...others] = waiting.get(found)!;
  waiting.delete(found);
  if (others.length > 0) waiting.set(found, others);
  return job;
}

/** It gets nothing of the environment, and has nothing to say but outcomes. */
async function start(): Promise<Worker> {
  const thread = new Worker(new URL('./thread.ts', import.meta.url), {
    name: 'schemas',
    env: {},
    execArgv: [],
    resourceLimits: MEMORY,
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  thread.once('message', () => resolve());
  thread.on('error', reject);
  thread.once('exit', reject);
  await promise;
  return thread;
}

/** False if the thread did not come to the end of it. */
async function run(thread: Worker, { tasks, outcomes }: Job): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const hear = (outcome: string | undefined) => {
    outcomes.push(outcome);
    if (outcomes.length === tasks.length) resolve(true);
  };
  const gone = () => resolve(false);
  thread.on('message', hear);
  thread.once('exit', gone);
  // If the event loop is late itself, what the thread has said meanwhile is heard first.
  const over = setTimeout(() => setImmediate(gone), JOB_MAX_MS);
  thread.ref();
  thread.postMessage(tasks);
  const isDone = await promise;
  clearTimeout(over);
  thread.off('message', hear);
  thread.off('exit', gone);
  return isDone;
}

function rest(thread: Worker): void {
  thread.unref();
  idle.push(thread);
  const end = () => {
    const index = idle.indexOf(thread);
    if (index === -1) return;
    idle.splice(index, 1);
    void thread.terminate();
  };
  setTimeout(end, IDLE_MS).unref();
}
