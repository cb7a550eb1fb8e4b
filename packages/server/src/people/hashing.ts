// Hashing of passwords. It is dear on purpose: each takes some 50 ms of a processor and 32 MiB, on the same four threads that check
// the signatures of cookies, look names up and read files. Strangers decide how often it is asked for, so few run at a time.
import { ApiError } from '../lib/api-error.ts';
import { Semaphore } from '../lib/semaphore.ts';

/** Half of the threads: the other half is for everything else. */
const AT_ONCE = 2;
/** Two seconds or so of work; who comes after that is better told at once. */
const MAX_WAITING = 40;

/** Runs `work` when fewer than `atOnce` others run, first come, first served. Throws 503 where `maxWaiting` wait already. */
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

// Of the process, as its threads are.
const queued = createQueue(AT_ONCE, MAX_WAITING);

/** Throws 503 where too many wait. */
export function hashPassword(password: string): Promise<string> {
  return queued(async () => (await import('better-auth/crypto')).hashPassword(password));
}

/** Throws 503 where too many wait. */
export function verifyPassword(given: { hash: string; password: string }): Promise<boolean> {
  return queued(async () => (await import('better-auth/crypto')).verifyPassword(given));
}
