// A stream may stay open for days, and a long poll for 20 seconds. Meanwhile the caller's key may be rotated, deleted or limited, and
// a person may be removed or signed out. A response that takes so long authorises its caller again: a stream every 30 seconds, and as
// soon as a node announces a change of its caller; a long poll before it responds. The streams of a session token end when it expires.
import { OVER, onceAborted } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import type { Platform } from '../../platform.ts';

/** How long a stream outlives its key at most: with 5,000 streams on a node this is 166 look-ups a second, in far fewer queries. */
const REAUTHORISE_EVERY_MS = 30_000;
// A caller that was authorised more recently is not looked up again. A long poll waits longer than this.
const REAUTHORISE_AFTER_MS = 250;
const LOST: ReadonlySet<number> = new Set([401, 403, 404]);

/** Authorises the callers of responses that stay open. */
export interface Reauthorisation {
  /** Call it with the context of a caller that was just authorised. `authorise` does it again and throws 401, 403 or 404. */
  start(ctx: Context, authorise: () => Promise<unknown>): OpenAccess;
  /** A key or a person was changed: their streams, on every node, are authorised again now. */
  announceAccessChange(callerId: string): void;
  stop(): void;
}

/** How access ends. */
export interface AccessEnd {
  lost(): void;
  /** The session token expired. Its client resumes with a new one. */
  expired(): void;
}

/** A caller's access to one response. */
export interface OpenAccess {
  /** Throws 401, 403 or 404 if the caller has lost access; looks nothing up within 250 ms of the first authorisation. */
  reauthorise(): Promise<void>;
  /** Authorises the caller again until `signal` is aborted or access ends. */
  watch(end: AccessEnd, signal: AbortSignal): void;
}

export function createReauthorisation({ clock, wake }: Pick<Platform, 'clock' | 'wake'>): Reauthorisation {
  const listeners = new Map<string, Set<() => void>>();

  // Without a hint any caller may have changed. A hint that is lost costs up to 30 seconds.
  const unsubscribe = wake.subscribe('access', (hint) => {
    const changed = hint ? [listeners.get(hint.callerId) ?? []] : listeners.values();
    for (const onChange of [...changed].flatMap((own) => [...own])) onChange();
  });

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
    { keyId, callerId, token }: Context,
    authorise: () => Promise<unknown>,
    { lost, expired }: AccessEnd,
    signal: AbortSignal,
  ): Promise<void> {
    // A change that is announced while the caller is being authorised makes the next pause none: that look-up may have been too early.
    let pause = new AbortController();
    const endPause = () => pause.abort(OVER);
    // A token is valid for as long as its key.
    onAccessChange((keyId ?? callerId)!, endPause, signal);
    onceAborted(signal, endPause);
    while (!signal.aborted) {
      const leftMs = token ? token.expiresAt.getTime() - clock.now().getTime() : REAUTHORISE_EVERY_MS;
      await clock.sleep(Math.min(REAUTHORISE_EVERY_MS, Math.max(0, leftMs)), pause.signal).catch(() => {});
      if (signal.aborted) return;
      if (token && token.expiresAt <= clock.now()) return expired();
      pause = new AbortController();
      try {
        await authorise();
      } catch (error) {
        if (signal.aborted) return;
        // If the database is unavailable, nothing is known about the key. 404: a token lost the scope of the route.
        if (error instanceof ApiError && LOST.has(error.status)) return lost();
      }
    }
  }

  return {
    start(ctx, authorise) {
      const authorisedAt = clock.now().getTime();
      return {
        async reauthorise() {
          if (clock.now().getTime() - authorisedAt > REAUTHORISE_AFTER_MS) await authorise();
        },
        watch(end, signal) {
          void watch(ctx, authorise, end, signal);
        },
      };
    },
    announceAccessChange: (callerId) => wake.publish('access', { callerId }),
    stop: unsubscribe,
  };
}
