// A stream may stay open for days, and a long poll for 20 seconds. Meanwhile the caller's key may be rotated, deleted or limited, and
// a person may be removed or signed out. A response that takes so long authorises its caller again: a stream every 30 seconds, and at
// once if this node itself made the change; a long poll before it responds.
import { OVER, onceAborted } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';

/** How long a stream outlives its key at most: with 5,000 streams on a node this is 166 look-ups a second, in far fewer queries. */
const REAUTHORISE_EVERY_MS = 30_000;
// A caller that was authorised more recently is not looked up again. A long poll waits longer than this.
const REAUTHORISE_AFTER_MS = 250;

/** Authorises the callers of responses that stay open. */
export interface Reauthorisation {
  /** Call it with the context of a caller that was just authorised. `authorise` does it again and throws 401 or 403. */
  start(callerId: string, authorise: () => Promise<unknown>): OpenAccess;
  /** A key or a person was changed on this node: their streams are authorised again now. */
  announceAccessChange(callerId: string): void;
}

/** A caller's access to one response. */
export interface OpenAccess {
  /** Throws 401 or 403 if the caller has lost access; looks nothing up within 250 ms of the first authorisation. */
  reauthorise(): Promise<void>;
  /** Authorises the caller again until `signal` is aborted; calls `end` once access is lost. */
  endWhenLost(end: () => void, signal: AbortSignal): void;
}

export function createReauthorisation(clock: Clock): Reauthorisation {
  const listeners = new Map<string, Set<() => void>>();

  /** Calls `onChange` at each announced change of a caller's access, until `signal` is aborted. */
  function onAccessChange(callerId: string, onChange: () => void, signal: AbortSignal): void {
    const own = listeners.get(callerId) ?? new Set();
    listeners.set(callerId, own.add(onChange));
    onceAborted(signal, () => {
      own.delete(onChange);
      if (own.size === 0 && listeners.get(callerId) === own) listeners.delete(callerId);
    });
  }

  async function watch(
    callerId: string,
    authorise: () => Promise<unknown>,
    end: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    // A change that is announced while the caller is being authorised makes the next pause none: that look-up may have been too early.
    let pause = new AbortController();
    const endPause = () => pause.abort(OVER);
    onAccessChange(callerId, endPause, signal);
    onceAborted(signal, endPause);
    while (!signal.aborted) {
      await clock.sleep(REAUTHORISE_EVERY_MS, pause.signal).catch(() => {});
      if (signal.aborted) return;
      pause = new AbortController();
      try {
        await authorise();
      } catch (error) {
        if (signal.aborted) return;
        // If the database is unavailable, nothing is known about the key.
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return end();
      }
    }
  }

  return {
    start(callerId, authorise) {
      const authorisedAt = clock.now().getTime();
      return {
        async reauthorise() {
          if (clock.now().getTime() - authorisedAt > REAUTHORISE_AFTER_MS) await authorise();
        },
        endWhenLost(end, signal) {
          void watch(callerId, authorise, end, signal);
        },
      };
    },
    announceAccessChange(callerId) {
      for (const onChange of [...(listeners.get(callerId) ?? [])]) onChange();
    },
  };
}
