// The scheduler: finds schedules that are due and runs each of them (run.ts).
//
//   schedules.next_at   when the next session is due; null if the schedule is paused or has no further occurrence
//   schedule_runs       one row for each occurrence that ran, failed or was missed
//
// It polls once a second, and at the exact time of the next due schedule that it has seen. There are no wake-ups: every due schedule
// is found by the next poll, on any node, after any restart. Any number of nodes may poll at once: a schedule that one of them has
// locked is skipped by the others, and its `next_at` has advanced when the lock is released.
import sql from 'sql-template-tag';
import { DatabaseUnavailable } from '../db/db.ts';
import { OVER } from '../lib/aborted.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type DueSchedule, runDue } from './run.ts';

export interface Scheduler {
  start(): void;
  /** Starts no further run, and waits for those in progress. */
  stop(): Promise<void>;
}

const POLL_MS = 1_000;
// The number of schedules in one page; on the hour thousands may be due.
const BATCH = 200;
// Concurrent transactions of a database server, of the pool's 20 connections.
const MAX_CONCURRENT = 4;
// The wait after an unexpected failure, so that a schedule that always fails neither delays the others nor fills the log.
const FAILURE_PAUSE_MS = 5_000;

const beforeAll: Pick<DueSchedule, 'nextAt' | 'scheduleId'> = {
  nextAt: new Date(0),
  scheduleId: '00000000-0000-0000-0000-000000000000',
};

export function createScheduler(platform: Platform): Scheduler {
  const { shards, clock, log } = platform;
  const stopping = new AbortController();
  /** Schedules that failed unexpectedly, and until when they are not retried. */
  const pausedUntil = new Map<string, number>();
  let loop: Promise<void> | undefined;

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      const nextDue = await runAllDue().catch((error) => {
        log.warn({ err: error }, 'looking for due schedules failed; retrying');
        return undefined;
      });
      const untilNextMs = nextDue ? Math.max(0, nextDue.getTime() - clock.now().getTime()) : POLL_MS;
      await clock.sleep(Math.min(untilNextMs, POLL_MS), stopping.signal).catch(() => {});
    }
  }

  /** Reads page by page, so that failing schedules don't block the others. Returns when the next one is due, if within a second. */
  async function runAllDue(): Promise<Date | undefined> {
    let after = beforeAll;
    while (!stopping.signal.aborted) {
      const now = clock.now().getTime();
      const page = await shards.query<DueSchedule>(
        'looking for due schedules',
        (within) => sql`
        select organization_id as "organizationId", schedule_id as "scheduleId", next_at as "nextAt" from schedules
        where status = 'enabled' and next_at <= ${new Date(now + POLL_MS)}
          and (next_at, schedule_id) > (${after.nextAt}, ${after.scheduleId}) ${within()}
        order by next_at, schedule_id limit ${BATCH}`,
      );
      // Each server of a sharded database may return a whole page.
      const found = page.rows.toSorted(byTime).slice(0, BATCH);
      for (const [scheduleId, until] of pausedUntil) if (until <= now) pausedUntil.delete(scheduleId);
      const due = found.filter(({ nextAt, scheduleId }) => nextAt.getTime() <= now && !pausedUntil.has(scheduleId));
      await shards.forEachShardWithTimeout('running schedules', due, ({ organizationId }) => organizationId, runSome);
      const soon = found.find(({ nextAt }) => nextAt.getTime() > now);
      const last = found.at(-1);
      if (soon || !last || found.length < BATCH) return soon?.nextAt;
      after = last;
    }
    return undefined;
  }

  async function runSome(due: readonly DueSchedule[]): Promise<void> {
    for (let at = 0; at < due.length && !stopping.signal.aborted; at += MAX_CONCURRENT) {
      const results = await Promise.allSettled(due.slice(at, at + MAX_CONCURRENT).map(run));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    }
  }

  async function run(schedule: DueSchedule): Promise<void> {
    const scheduleId = formatId('sch', schedule.scheduleId);
    try {
      const ran = await runDue(platform, schedule);
      if (!ran) return;
      const { outcome, missed } = ran;
      const { status } = outcome;
      const what = outcome.status === 'opened' ? { sessionId: outcome.sessionId } : { code: outcome.error.code };
      log.info({ scheduleId, scheduledAt: ran.scheduledAt.toISOString(), status, ...what, missed }, 'schedule');
    } catch (error) {
      pausedUntil.set(schedule.scheduleId, clock.now().getTime() + FAILURE_PAUSE_MS);
      // The other schedules would fail as well.
      if (error instanceof DatabaseUnavailable) throw error;
      log.error({ err: error, scheduleId }, 'running a schedule failed; retrying');
    }
  }

  return {
    start() {
      loop = poll();
    },
    async stop() {
      stopping.abort(OVER);
      await loop;
      await shards.ended('running schedules');
    },
  };
}

function byTime(a: DueSchedule, b: DueSchedule): number {
  return a.nextAt.getTime() - b.nextAt.getTime() || (a.scheduleId < b.scheduleId ? -1 : 1);
}
