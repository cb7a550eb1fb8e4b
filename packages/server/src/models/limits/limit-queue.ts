// One limit on this node: the calls that ask, and the next look while calls wait for it, here or on other nodes.
//
// There is one look at a time, for all calls that have asked meanwhile. Nothing but corrections of estimates is kept between looks, and only
// after a look that failed, so any node may stop at any time.
import { OVER } from '../../lib/aborted.ts';
import { coalesced } from '../../lib/coalesced.ts';
import type { Platform } from '../../platform.ts';
import { type Admission, type Asked, type Correction, type LimitKey, takeTurn } from './turn.ts';

export interface LimitQueue {
  /** Whether the call may be made now. Otherwise it waits in its place, and its session is woken. */
  ask(call: Asked): Promise<Admission>;
  /** A call took another number of tokens than was estimated. */
  correct(correction: Correction): void;
  /** The limit may have changed, or calls may wait for it. */
  look(): void;
  /** Looks no more by itself. */
  stop(): void;
}

// After a look that failed.
const RETRY_MS = 5_000;

export function createLimitQueue(
  { db, clock, wake, log }: Pick<Platform, 'db' | 'clock' | 'wake' | 'log'>,
  key: LimitKey,
): LimitQueue {
  let asking: { call: Asked; result: PromiseWithResolvers<Admission> }[] = [];
  let corrections: Correction[] = [];
  /** Ends the wait for the next look. */
  let waiting: AbortController | undefined;
  let isStopped = false;

  const lookOnce = coalesced(async () => {
    const [asked, corrected] = [asking, corrections];
    [asking, corrections] = [[], []];
    const now = clock.now();
    try {
      const calls = asked.map(({ call }) => call);
      const { admissions, wokenSessionIds, nextMs } = await takeTurn(db, key, calls, corrected, now);
      for (const [index, { result }] of asked.entries()) result.resolve(admissions[index]!);
      for (const sessionId of wokenSessionIds) wake.publish('runnable', { ...key, sessionId });
      schedule(nextMs);
    } catch (error) {
      for (const { result } of asked) result.reject(error);
      // The calls that asked fail and ask again, but what others have used would be lost.
      corrections = [...corrected, ...corrections];
      log.warn({ err: error }, 'looking at a limit of model calls failed; retrying');
      schedule(now.getTime() + RETRY_MS);
    }
  });

  function look(): void {
    void lookOnce();
  }

  function schedule(atMs: number | undefined): void {
    waiting?.abort(OVER);
    waiting = undefined;
    if (atMs === undefined || isStopped) return;
    waiting = new AbortController();
    clock.sleep(atMs - clock.now().getTime(), waiting.signal).then(look, () => {});
  }

  return {
    ask(call) {
      const result = Promise.withResolvers<Admission>();
      asking.push({ call, result });
      look();
      return result.promise;
    },
    correct(correction) {
      corrections.push(correction);
      look();
    },
    look,
    stop() {
      isStopped = true;
      schedule(undefined);
    },
  };
}
