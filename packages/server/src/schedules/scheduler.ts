// The scheduler: finds the schedules whose time has come, and has each dealt with (run.ts).
//
// It looks once a second, and at the instant at which the next one that it has seen is due. Nothing else tells it: whatever
// is due is found by the next look, on any node, after any restart. Two nodes that look at once do no harm: a schedule that
// one of them has locked is skipped by the other, and found done afterwards.
import sql from 'sql-template-tag';
import { DatabaseUnavailable } from '../db/db.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type DueSchedule, runDue } from './run.ts';

export interface Scheduler {
  start(): void;
  /** Takes up nothing more, and waits for what is under way. */
  stop(): Promise<void>;
}

const POLL_MS = 1_000;
// Read at a time; at the full hour there may be thousands.
const BATCH = 200;
// Transactions of a shard at once, of the pool's 20 connections.
const MAX_CONCURRENT = 4;
// After a failure that was not foreseen, so that a schedule that always fails neither keeps others waiting nor fills the log.
const FAILURE_PAUSE_MS = 5_000;

const beforeAll: Pick<DueSchedule, 'nextAt' | 'scheduleId'> = {
  nextAt: new Date(0),
  scheduleId: '00000000-0000-0000-0000-000000000000',
};

export function createScheduler(platform: Platform): Scheduler {
  const { shards, clock, log } = platform;
  const stopping = new AbortController();
  /** Schedules that failed, and until when they are left alone. */
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

  /** Page by page, so that those that fail don't stand before the others. Returns when the next is due, where that is soon. */
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
      // Each server may have a page of its own.
      const found = page.rows.toSorted(byTime).slice(0, BATCH);
      for (const [scheduleId, until] of pausedUntil) if (until <= now) pausedUntil.delete(scheduleId);
      const due = found.filter(({ nextAt, scheduleId }) => nextAt.getTime() <= now && !pausedUntil.has(scheduleId));
      await shards.eachInTime('running schedules', due, ({ organizationId }) => organizationId, runSome);
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
      // It is away for the others too.
      if (error instanceof DatabaseUnavailable) throw error;
      log.error({ err: error, scheduleId }, 'running a schedule failed; retrying');
    }
  }

  return {
    start() {
      loop = poll();
    },
    async stop() {
      stopping.abort();
      await loop;
      await shards.ended('running schedules');
    },
  };
}

function byTime(a: DueSchedule, b: DueSchedule): number {
  return a.nextAt.getTime() - b.nextAt.getTime() || (a.scheduleId < b.scheduleId ? -1 : 1);
}
