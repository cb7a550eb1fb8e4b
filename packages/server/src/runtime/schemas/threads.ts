// Threads that evaluate schemas, and are terminated if they take too long: there is no other way to stop a regular expression. A
// thread is started when it is needed, and ends after 30 idle seconds.
//
// Waiting organizations take turns, and each has at most one thread at a time: its schemas can't block those of others.
import { Worker } from 'node:worker_threads';
import type { Outcome, Task } from './judge.ts';

/** The fewest with which one organization can't block another: the event loop needs the cores too. */
const MAX_THREADS = 2;
/** For all tasks of a job. An ordinary schema takes far less than a millisecond. */
const JOB_MAX_MS = 1_000;
const IDLE_MS = 30_000;
/** Limits the memory that a schema can take. */
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

/** In order. If a task takes too long, the outcome of it and of those after it is null. Never throws. */
export async function runInThread(organizationId: string, tasks: readonly Task[]): Promise<Outcome[]> {
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const job: Job = { organizationId, tasks, outcomes: [], end };
  waiting.set(organizationId, [...(waiting.get(organizationId) ?? []), job]);
  if (threads < MAX_THREADS) void serve();
  await promise;
  return tasks.map((_, index) => (index < job.outcomes.length ? job.outcomes[index] : null));
}

/** Runs jobs in a thread until none is waiting. */
async function serve(): Promise<void> {
  threads += 1;
  let thread: Worker | undefined;
  for (let job = nextJob(); job; job = nextJob()) {
    served.add(job.organizationId);
    try {
      thread ??= idle.pop() ?? (await start());
      if (!(await run(thread, job))) {
        // The compilation of a pattern can't be interrupted, so the thread counts until it has ended.
        const ended = thread.terminate();
        thread = undefined;
        await ended;
      }
    } catch {
      // The thread could not be started. Its tasks are not evaluated.
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

/** It has no environment variables, and its only output is outcomes. */
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

/** False if the thread was stopped before it finished the job. */
async function run(thread: Worker, { tasks, outcomes }: Job): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const hear = (outcome: Outcome) => {
    outcomes.push(outcome);
    if (outcomes.length === tasks.length) resolve(true);
  };
  const gone = () => resolve(false);
  thread.on('message', hear);
  thread.once('exit', gone);
  // If the event loop itself was late, messages that the thread has already posted are read first.
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
