// The requests of a key in a minute, counted over all nodes.
//
// A row in the database says how many requests of the current minute were taken. A node takes a slice of them at a time and admits
// requests from it without asking again, so the row is written a few hundred times a minute, whatever the limit. Requests that wait
// for a slice at the same time share one statement. A key never gets more than its limit in a minute. It gets less by what nodes took
// and did not use: each of them at most a 200th of the limit, and less of what is left as the limit comes near. A node that stops
// loses its slice. The clock of the database says when a minute ends.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';

export interface RequestCount {
  isAdmitted: boolean;
  /** What this node knows to be left in this minute. */
  remaining: number;
  /** Until the minute ends; at least 1. */
  resetSeconds: number;
}

export interface RequestLimits {
  /** Counts a request of a key with this limit. */
  count(key: { organizationId: string; keyId: string }, limit: number): Promise<RequestCount>;
}

interface Window {
  limit: number;
  /** Requests of the slice. */
  left: number;
  /** What no node had taken after the last slice. */
  untaken: number;
  /** By the clock of this node. */
  endsAt: number;
}

interface Waiting {
  limit: number;
  resolve(count: RequestCount): void;
  reject(error: unknown): void;
}

const WINDOW_SECONDS = 60;
const MAX_REMEMBERED = 10_000;

export function createRequestLimits({ db, clock }: { db: Db; clock: Clock }): RequestLimits {
  const windows = new Map<string, Window>();
  const queues = new Map<string, Waiting[]>();

  function current(id: string, limit: number): Window | undefined {
    const window = windows.get(id);
    // With another limit, what this node knows to be left is wrong.
    return window && window.endsAt > clock.now().getTime() && window.limit === limit ? window : undefined;
  }

  function admit(window: Window): RequestCount {
    const isAdmitted = window.left > 0;
    if (isAdmitted) window.left -= 1;
    const seconds = Math.ceil((window.endsAt - clock.now().getTime()) / 1000);
    return { isAdmitted, remaining: window.left + window.untaken, resetSeconds: Math.max(1, seconds) };
  }

  async function takeSlice(organizationId: string, keyId: string, limit: number, wanted: number): Promise<Window> {
    const end = sql`now() + ${WINDOW_SECONDS} * interval '1 second'`;
    const [, [row] = [], [clockRow] = []] = await db.batch<{ taken: number; endsAt: Date; now: Date }>([
      sql`
        update key_request_windows w set ends_at = ${end}, taken = 0
        where w.organization_id = ${organizationId} and w.key_id = ${keyId} and w.ends_at <= now()`,
      sql`
        insert into key_request_windows as w (organization_id, key_id, ends_at, taken)
        values (${organizationId}, ${keyId}, ${end}, ${wanted})
        on conflict (organization_id, key_id) do update set taken = w.taken + excluded.taken
        returning w.taken::float8 as taken, w.ends_at as "endsAt"`,
      // Another node may have begun the minute while these waited for the row: after their `now()`.
      sql`select clock_timestamp() as now`,
    ]);
    const { taken, endsAt } = row!;
    const leftMs = endsAt.getTime() - clockRow!.now.getTime();
    const before = taken - wanted;
    const left = Math.max(0, Math.min(wanted, limit - before));
    return { limit, left, untaken: Math.max(0, limit - taken), endsAt: clock.now().getTime() + leftMs };
  }

  /** Takes slices until no request waits. */
  async function serve(id: string, organizationId: string, keyId: string, queue: Waiting[]): Promise<void> {
    // Requests of the same turn of the event loop share the first slice.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (queue.length > 0) {
      const waiting = queue.splice(0);
      const { limit } = waiting.at(-1)!;
      try {
        const known = windows.get(id);
        const isNew = !known || known.endsAt <= clock.now().getTime();
        const slice = sliceOf(limit, isNew ? limit : known.untaken);
        const window = await takeSlice(organizationId, keyId, limit, Math.max(waiting.length, slice));
        remember(id, window);
        for (const { resolve } of waiting) resolve(admit(window));
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
    }
    queues.delete(id);
  }

  function remember(id: string, window: Window): void {
    windows.delete(id);
    windows.set(id, window);
    if (windows.size <= MAX_REMEMBERED) return;
    const [oldest] = windows.keys();
    windows.delete(oldest!);
  }

  return {
    count({ organizationId, keyId }, limit) {
      const id = `${organizationId}${keyId}`;
      const window = current(id, limit);
      // Requests of a minute that is used up do not come back, so the database is not asked again before it ends.
      if (window && (window.left > 0 || window.untaken === 0)) return Promise.resolve(admit(window));
      return new Promise((resolve, reject) => {
        const queue = queues.get(id);
        if (queue) return void queue.push({ limit, resolve, reject });
        const own = [{ limit, resolve, reject }];
        queues.set(id, own);
        void serve(id, organizationId, keyId, own);
      });
    },
  };
}

/** Not more than a 200th of the limit, and not more than a 20th of what is left. */
function sliceOf(limit: number, untaken: number): number {
  return Math.max(1, Math.floor(Math.min(limit / 200, untaken / 20)));
}
