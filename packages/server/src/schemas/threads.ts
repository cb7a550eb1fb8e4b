// Threads that evaluate schemas, and are terminated if they take too long: there is no other way to stop a regular expression. A
// thread is started when it is needed, and ends after 30 idle seconds.
//
// Waiting organizations take turns, and each has at most one thread at a time: its schemas can't block those of others.
import { Worker } from 'node:worker_threads';
import { createFairShare } from '../lib/fair-share.ts';
import { codeFile } from '../lib/files/code-file.ts';
import type { Outcome, Task } from './judge.ts';

/** The fewest with which one organization can't block another: the event loop needs the cores too. */
const MAX_THREADS = 2;
/** For all tasks of a job. An ordinary schema takes far less than a millisecond. */
const JOB_MAX_MS = 1_000;
const IDLE_MS = 30_000;
/** Limits the memory that a schema can take. */
const MEMORY = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

const share = createFairShare({ max: MAX_THREADS, maxOfOrganization: 1 });
/** Threads without work, and the timers that end them. */
const idle: { thread: Worker; end: NodeJS.Timeout }[] = [];

/** In order. If a task takes too long, the outcome of it and of those after it is null. Never throws. */
export async function runInThread(organizationId: string, tasks: readonly Task[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const release = await share.take(organizationId);
  try {
    const thread = takeIdle() ?? (await start());
    if (await run(thread, tasks, outcomes)) rest(thread);
    // The compilation of a pattern can't be interrupted, so the thread counts until it has ended.
    else await thread.terminate();
  } catch {
    // The thread could not be started. Its tasks are not evaluated.
  } finally {
    release!();
  }
  return tasks.map((_, index) => outcomes[index] ?? null);
}

/** It has no environment variables, and its only output is outcomes. */
async function start(): Promise<Worker> {
  const thread = new Worker(codeFile('schemas/thread'), {
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

/** False if the thread was stopped before it finished the tasks. */
async function run(thread: Worker, tasks: readonly Task[], outcomes: Outcome[]): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onMessage = (outcome: Outcome) => {
    outcomes.push(outcome);
    if (outcomes.length === tasks.length) resolve(true);
  };
  const onExit = () => resolve(false);
  thread.on('message', onMessage);
  thread.once('exit', onExit);
  // If the event loop itself was late, messages that the thread has already posted are read first.
  const over = setTimeout(() => setImmediate(onExit), JOB_MAX_MS);
  thread.ref();
  thread.postMessage(tasks);
  const isDone = await promise;
  clearTimeout(over);
  thread.off('message', onMessage);
  thread.off('exit', onExit);
  return isDone;
}

function takeIdle(): Worker | undefined {
  const { thread, end } = idle.pop() ?? {};
  clearTimeout(end);
  return thread;
}

function rest(thread: Worker): void {
  thread.unref();
  const end = setTimeout(() => {
    idle.splice(idle.indexOf(resting), 1);
    void thread.terminate();
  }, IDLE_MS).unref();
  const resting = { thread, end };
  idle.push(resting);
}
