// What must be done now and then and by nobody's request: giving event records their place, dropping what has expired, and
// compacting usage.
// Every node of role `runtime` does it; two at once do no harm.
import sql from 'sql-template-tag';
import { organizationsToSequence, sequenceEvents } from './events/sequencer.ts';
import type { Platform } from './platform.ts';
import { compactUsage, organizationsToCompact } from './usage/compact.ts';

export interface Upkeep {
  start(): void;
  stop(): Promise<void>;
}

// Readers of the log run the sequencer themselves; this bounds how long records of an organization that nobody reads wait.
const SEQUENCE_EVERY_MS = 1_000;
// An expired record is already without effect; this only gives back its space.
const EXPIRE_EVERY_MS = 60_000;
// A report is right before it too; this only makes it cheaper.
const COMPACT_EVERY_MS = 60_000;

export function createUpkeep({ db, clock, log }: Pick<Platform, 'db' | 'clock' | 'log'>): Upkeep {
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];

  async function every(ms: number, what: string, act: () => Promise<unknown>): Promise<void> {
    while (!stopping.signal.aborted) {
      await act().catch((error) => log.warn({ err: error }, `${what} failed; trying again`));
      await clock.sleep(ms, stopping.signal).catch(() => {});
    }
  }

  async function sequence(): Promise<void> {
    for (const organizationId of await organizationsToSequence(db)) {
      if (stopping.signal.aborted) return;
      await sequenceEvents(db, organizationId);
    }
  }

  async function compact(): Promise<void> {
    for (const organizationId of await organizationsToCompact(db)) {
      while (!stopping.signal.aborted && (await compactUsage(db, organizationId)));
    }
  }

  return {
    start() {
      loops.push(
        every(SEQUENCE_EVERY_MS, 'sequencing the event log', sequence),
        every(EXPIRE_EVERY_MS, 'dropping expired idempotency records', () =>
          db.execute(sql`delete from idempotency_records where expires_at <= ${clock.now()}`),
        ),
        every(COMPACT_EVERY_MS, 'compacting usage', compact),
      );
    },
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}
