// Reads the event log of one organization, once for all of its destinations that are at the same record, and writes what becomes due in
// the transaction that advances the reading. So no record is missed and none is written twice, whichever node stops when.
//
// The reader of the log never waits for a receiver: rows are sent from where they were written. Only if thousands of rows of a destination
// wait, the rest of its records waits in the log. A destination that has to catch up reads alone until it is where the others are.
import sql from 'sql-template-tag';
import type { PendingEvent } from '../events/record.ts';
import { type EventHead, readEventHead, recordOf, sequenceEvents } from '../events/sequencer.ts';
import { OVER } from '../lib/aborted.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { isCreation, type LoggedEvent, receives } from './destination/filter.ts';
import type { DestinationSender } from './destination/kind.ts';
import { kinds } from './kinds.ts';

export type ReaderPlatform = Pick<Platform, 'db' | 'clock' | 'log' | 'eventWatch'>;

// Records that are in memory at once.
const BATCH = 250;
const AFTER_ERROR_MS = 1_000;
// Between two looks that nothing asked for.
const LOOK_EVERY_MS = 60_000;
// Records that nothing is due by are read again after a crash, at most those of this time.
const STORE_EVERY_MS = 10_000;

interface Reading {
  sender: DestinationSender;
  /** The epoch that the rest is of. */
  epoch: number;
  cursor: number;
  storedAtMs: number;
  isStarted: boolean;
}

/** What a destination takes of the records that were read. */
interface Take {
  reading: Reading;
  events: LoggedEvent[];
  isStarted: boolean;
}

export class LogReader {
  readonly #platform: ReaderPlatform;
  readonly #organizationId: string;
  readonly #onStale: () => void;
  readonly #readings = new Map<string, Reading>();
  readonly #stopping = new AbortController();
  #woken = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(platform: ReaderPlatform, organizationId: string, onStale: () => void) {
    this.#platform = platform;
    this.#organizationId = organizationId;
    this.#onStale = onStale;
  }

  /** Reads for this sender, from where its assignment says. */
  add(sender: DestinationSender): void {
    const { destinationId, epoch, readSequence, isStarted } = sender.assignment;
    const known = this.#readings.get(destinationId);
    if (known?.epoch === epoch && known.sender === sender) return;
    const storedAtMs = this.#platform.clock.now().getTime();
    this.#readings.set(destinationId, {
      ...{ sender, epoch, cursor: readSequence, storedAtMs, isStarted },
    });
    this.#loop ??= this.#run();
    this.wake();
  }

  remove(destinationId: string): void {
    this.#readings.delete(destinationId);
  }

  /** There may be something to read. */
  wake(): void {
    this.#woken.abort(OVER);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(OVER);
    this.wake();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock, log, eventWatch } = this.#platform;
    while (!this.#stopping.signal.aborted) {
      // Before the reading, so that a wake-up during it is followed by another.
      this.#woken = new AbortController();
      const { signal } = this.#woken;
      try {
        const end = await this.#readAll();
        await eventWatch.after(this.#organizationId, end, LOOK_EVERY_MS, signal);
      } catch (error) {
        const organizationId = formatId('org', this.#organizationId);
        log.warn({ err: error, organizationId }, 'reading the event log for destinations failed; retrying');
        await clock.sleep(AFTER_ERROR_MS, signal).catch(() => {});
      }
    }
  }

  /** Returns the number of the last record that there was. */
  async #readAll(): Promise<number> {
    const db = this.#platform.db.of(this.#organizationId);
    await sequenceEvents(db, this.#organizationId);
    const head = await readEventHead(db, this.#organizationId);
    while (!this.#stopping.signal.aborted) {
      const behind = [...this.#readings.values()].filter(
        ({ cursor, sender }) => cursor < head.sequence && sender.isActive && sender.hasRoom,
      );
      if (behind.length === 0) break;
      for (const [cursor, group] of Map.groupBy(behind, ({ cursor }) => cursor)) await this.#read(cursor, group, head);
    }
    return head.sequence;
  }

  async #read(cursor: number, group: readonly Reading[], { sequence: end, anchorSequence }: EventHead): Promise<void> {
    const db = this.#platform.db.of(this.#organizationId);
    const from = Math.max(cursor, anchorSequence);
    const rows = await db.query<{ eventId: string; sequence: number; body: PendingEvent; occurredAt: Date }>(sql`
      select event_id as "eventId", sequence, body, occurred_at as "occurredAt" from events
      where organization_id = ${this.#organizationId} and sequence > ${from} and sequence <= ${end}
      order by sequence limit ${BATCH}`);
    const events = rows.map(({ eventId, sequence, occurredAt, body }) => recordOf(eventId, sequence, occurredAt, body));
    // Retention may have deleted more since the head was read.
    const first = events[0]?.sequence ?? end + 1;
    const lost = first > cursor + 1 ? { from: cursor + 1, to: first - 1 } : undefined;
    const to = events.length < BATCH ? end : events.at(-1)!.sequence;
    const nowMs = this.#platform.clock.now().getTime();
    const takes = group.map((reading): Take => takeFrom(reading, events, lost !== undefined));
    const isDue = ({ reading, events, isStarted }: Take) =>
      events.length > 0 || isStarted !== reading.isStarted || nowMs - reading.storedAtMs >= STORE_EVERY_MS;
    await this.#store(
      takes.filter((take) => lost !== undefined || isDue(take)),
      to,
      lost,
    );
    for (const { reading } of takes) reading.cursor = Math.max(reading.cursor, to);
  }

  /** Advances those that have not changed since they were assigned, and writes what is due. */
  async #store(takes: readonly Take[], to: number, lost: { from: number; to: number } | undefined): Promise<void> {
    if (takes.length === 0) return;
    const { clock } = this.#platform;
    const organizationId = this.#organizationId;
    const now = clock.now();
    const advanced = await this.#platform.db.of(organizationId).transaction(async (tx) => {
      const ids = takes.map(({ reading }) => reading.sender.assignment.destinationId);
      const rows = await tx.query<{ destinationId: string }>(sql`
        update destinations d set read_sequence = ${to}, started = x.started,
          lost_from = ${lost ? sql`${lost.from}` : sql`d.lost_from`}, lost_to = ${lost ? sql`${lost.to}` : sql`d.lost_to`}
        from unnest(${ids}::uuid[], ${takes.map(({ reading }) => reading.epoch)}::int[],
          ${takes.map(({ isStarted }) => isStarted)}::boolean[]) as x(id, at_epoch, started)
        where d.organization_id = ${organizationId} and d.destination_id = x.id and d.epoch = x.at_epoch
          and d.status = 'enabled'
        returning d.destination_id as "destinationId"`);
      const current = new Set(rows.map(({ destinationId }) => destinationId));
      const done = takes.filter(({ reading }) => current.has(reading.sender.assignment.destinationId));
      return Promise.all(
        done.map(async ({ reading, events, isStarted }) => {
          const { assignment } = reading.sender;
          if (events.length === 0) return { reading, isStarted, rows: 0 };
          const { statement, rows } = kinds[assignment.type].due(assignment, events, now);
          await tx.execute(statement);
          return { reading, isStarted, rows };
        }),
      );
    });
    for (const { reading, isStarted, rows } of advanced) {
      Object.assign(reading, { storedAtMs: now.getTime(), isStarted });
      if (rows > 0) reading.sender.added(rows);
    }
    if (advanced.length < takes.length) {
      // It is read again from where it is, once it is assigned anew.
      const kept = new Set(advanced.map(({ reading }) => reading));
      for (const { reading } of takes) if (!kept.has(reading)) this.remove(reading.sender.assignment.destinationId);
      this.#onStale();
    }
  }
}

/** `isLost`: records are missing, perhaps that of the destination's creation. */
function takeFrom(reading: Reading, events: readonly LoggedEvent[], isLost: boolean): Take {
  const { sender } = reading;
  const { assignment, isFailing } = sender;
  let isStarted = reading.isStarted || isLost;
  const taken: LoggedEvent[] = [];
  for (const event of events) {
    if (isStarted) {
      if (receives(assignment, event, isFailing)) taken.push(event);
    } else isStarted = isCreation(event, assignment.destinationId);
  }
  return { reading, events: taken, isStarted };
}
