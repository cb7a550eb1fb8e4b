// A stream may stay open for days, and a long poll for 20 seconds. Meanwhile the caller's key may be rotated, deleted or limited, and
// a person may be removed or signed out. A response that takes so long authorizes its caller again: a stream every 30 seconds, and as
// soon as a node announces a change of its caller; a long poll before it responds. The streams of a session token end when it expires.
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import type { Platform } from '../../platform.ts';

/** How long a stream outlives its key at most: with 5,000 streams on a node this is 166 look-ups a second, in far fewer queries. */
const REAUTHORIZE_EVERY_MS = 30_000;
/** How often those are searched for whose turn it is. One timer for all of them, but often, so that few have their turn at once. */
const CHECK_EVERY_MS = 250;
// A caller that was authorized more recently is not looked up again. A long poll waits longer than this.
const REAUTHORIZE_AFTER_MS = 250;
const LOST: ReadonlySet<number> = new Set([401, 403, 404]);

/** Authorizes the callers of responses that stay open. */
export interface Reauthorization {
  /** Call it with the context of a caller that was just authorized. `authorize` does it again and throws 401, 403 or 404. */
  start(ctx: Context, authorize: () => Promise<unknown>): OpenAccess;
  /** A key or a person was changed: their streams, on every node, are authorized again now. */
  announceAccessChange(callerId: string): void;
  stop(): Promise<void>;
}

/** How access ends. */
export interface AccessEnd {
  lost(): void;
  /** The session token expired. Its client resumes with a new one. */
  expired(): void;
}

/** A caller's access to one response. */
export interface OpenAccess {
  /** Throws 401, 403 or 404 if the caller has lost access; looks nothing up within 250 ms of the first authorization. */
  reauthorize(): Promise<void>;
  /** Authorizes the caller again until access ends or the returned function is called. */
  watch(end: AccessEnd): () => void;
}

/** An open stream. */
interface WatchedAccess {
  readonly callerId: string;
  /** The expiry of a session token, by the clock. */
  readonly expiresAt: number | undefined;
  readonly authorize: () => Promise<unknown>;
  readonly end: AccessEnd;
  /** When the caller is authorized again; infinite while it is. */
  dueAt: number;
  /** A change was announced while the caller was being authorized: that look-up may have been too early. */
  hasChanged: boolean;
}

export function createReauthorization({ clock, wake }: Pick<Platform, 'clock' | 'wake'>): Reauthorization {
  const watched = new Set<WatchedAccess>();
  const byCaller = new Map<string, Set<WatchedAccess>>();
  const stopping = new AbortController();
  const now = () => clock.now().getTime();

  // Without a hint any caller may have changed. A hint that is lost costs up to 30 seconds.
  const unsubscribe = wake.subscribe('access', (hint) => {
    const changed = hint ? (byCaller.get(hint.callerId) ?? []) : watched;
    for (const access of [...changed]) {
      access.hasChanged = true;
      void authorizeIfDue(access);
    }
  });

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(CHECK_EVERY_MS, stopping.signal).catch(() => {});
      const at = now();
      for (const access of watched) {
        endIfExpired(access);
        if (access.dueAt <= at) void authorizeIfDue(access);
      }
    }
  }

  async function authorizeIfDue(access: WatchedAccess): Promise<void> {
    if (access.dueAt === Number.POSITIVE_INFINITY) return;
    while (watched.has(access) && (access.hasChanged || access.dueAt <= now())) {
      access.hasChanged = false;
      access.dueAt = Number.POSITIVE_INFINITY;
      try {
        await access.authorize();
      } catch (error) {
        // If the database is unavailable, nothing is known about the key. 404: a token lost the scope of the route.
        if (error instanceof ApiError && LOST.has(error.status)) return end(access, () => access.end.lost());
      }
      access.dueAt = now() + REAUTHORIZE_EVERY_MS;
    }
  }

  /** A token that expires before the next check gets a timer of its own, so that its stream ends in time. */
  function endIfExpired(access: WatchedAccess): void {
    if (access.expiresAt === undefined) return;
    const leftMs = access.expiresAt - now();
    if (leftMs > CHECK_EVERY_MS) return;
    if (leftMs <= 0) {
      end(access, () => access.end.expired());
      return;
    }
    void clock.sleep(leftMs, stopping.signal).then(
      () => endIfExpired(access),
      () => {},
    );
  }

  function end(access: WatchedAccess, how: () => void): void {
    if (forget(access)) how();
  }

  /** False if it was forgotten before. */
  function forget(access: WatchedAccess): boolean {
    const own = byCaller.get(access.callerId);
    own?.delete(access);
    if (own?.size === 0) byCaller.delete(access.callerId);
    return watched.delete(access);
  }

  function watch(access: WatchedAccess): () => void {
    watched.add(access);
    const own = byCaller.get(access.callerId) ?? new Set();
    byCaller.set(access.callerId, own.add(access));
    // Not before this returns.
    queueMicrotask(() => endIfExpired(access));
    return () => void forget(access);
  }

  const running = run();
  return {
    start({ keyId, callerId, token }, authorize) {
      const authorizedAt = now();
      // A token is valid for as long as its key.
      const [of, expiresAt] = [(keyId ?? callerId)!, token?.expiresAt.getTime()];
      return {
        async reauthorize() {
          if (now() - authorizedAt > REAUTHORIZE_AFTER_MS) await authorize();
        },
        watch: (end) =>
          watch({ callerId: of, expiresAt, authorize, end, dueAt: now() + REAUTHORIZE_EVERY_MS, hasChanged: false }),
      };
    },
    announceAccessChange: (callerId) => wake.publish('access', { callerId }),
    async stop() {
      unsubscribe();
      stopping.abort(OVER);
      await running;
    },
  };
}
