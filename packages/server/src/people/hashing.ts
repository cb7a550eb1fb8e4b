// Password hashing, which is expensive on purpose: each hash takes about 50 ms of CPU and 32 MiB, on the same four threads that check the
// signatures of cookies, resolve names and read files. Strangers decide how often it runs, so only a few run at a time.
import { ApiError } from '../lib/api-error.ts';
import { Semaphore } from '../lib/semaphore.ts';

/** Half of the threads; the other half is for everything else. */
const AT_ONCE = 2;
/** About two seconds of work; beyond that an immediate refusal is better. */
const MAX_WAITING = 40;

/** Runs `work` when fewer than `atOnce` others run, first come, first served. Throws 503 if `maxWaiting` are waiting already. */
export function createQueue(atOnce: number, maxWaiting: number): <T>(work: () => Promise<T>) => Promise<T> {
  const semaphore = new Semaphore(atOnce);
  return async (work) => {
    if (semaphore.waitingCount >= maxWaiting) {
      throw new ApiError('unavailable', 'Too many people are signing in at the moment. Try again soon.', {
        retryAfterSeconds: 2,
      });
    }
    return semaphore.run(work);
  };
}

// One for the process, as its threads are.
const queued = createQueue(AT_ONCE, MAX_WAITING);

/** Throws 503 if too many are waiting. */
export function hashPassword(password: string): Promise<string> {
  return queued(async () => (await import('better-auth/crypto')).hashPassword(password));
}

/** Throws 503 if too many are waiting. */
export function verifyPassword(given: { hash: string; password: string }): Promise<boolean> {
  return queued(async () => (await import('better-auth/crypto')).verifyPassword(given));
}
