// What a check finds, and how one is run: within a time limit, and without ending the others if it fails.
import { OVER } from '../../lib/aborted.ts';
import { systemClock } from '../../lib/clock.ts';

export interface Finding {
  /** What was checked, such as `database.version`. */
  check: string;
  status: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What was found; what is wrong. */
  message: string;
  /** What to do about it. */
  fix?: string;
}

export type Report = (finding: Finding) => void;

export const ok = (message: string) => ({ status: 'ok' as const, message });
export const warning = (message: string, fix: string) => ({ status: 'warning' as const, message, fix });
export const failed = (message: string, fix: string) => ({ status: 'failed' as const, message, fix });
export const skipped = (message: string) => ({ status: 'skipped' as const, message });

/** Longer than a connection attempt takes to time out. */
const LIMIT_MS = 12_000;

class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

/** Rejects with `TookTooLong` if the work takes too long. Does not stop it. */
export async function within<T>(work: Promise<T>, ms = LIMIT_MS): Promise<T> {
  const over = new AbortController();
  // What fails later is of no interest.
  work.catch(() => {});
  const late = systemClock.sleep(ms, over.signal).then(() => {
    throw new TookTooLong(`no response within ${ms / 1000} seconds`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort(OVER);
  }
}

/** Reports what the check finds. An error is a failure, with its message. Returns whether nothing failed. */
export async function run(
  report: Report,
  check: string,
  find: () => Promise<Omit<Finding, 'check'> | Omit<Finding, 'check'>[]> | Omit<Finding, 'check'>,
  { fix, limitMs }: { fix?: string; limitMs?: number } = {},
): Promise<boolean> {
  let found: Omit<Finding, 'check'>[];
  try {
    found = [await within(Promise.resolve(find()), limitMs)].flat();
  } catch (error) {
    const message = (error as Error).message;
    // Without a fix, the message says what to do.
    found = [{ status: 'failed', message, ...(fix !== undefined && { fix }) }];
  }
  for (const one of found) report({ check, ...one });
  return found.every(({ status }) => status !== 'failed');
}
