// The event log as one file of any length, oldest first, up to the newest record when it began.
//
// It is read in windows of sequence numbers, a few KiB of records per statement, whenever the client has room for the next. No
// statement is long, no snapshot stays open, and memory use is small, however many records there are and however slow the client.
import type { Event, Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { PoolContext } from '../lib/context.ts';
import { csvLine, type ExportedFile, fileOf } from '../lib/files/exported-file.ts';
import { conditions, type EventRow, filtersOf, selectEvents, viewEvent } from './select.ts';
import { readEventHead, sequenceEvents } from './sequencer.ts';

// Sequence numbers that one statement reads. In memory there are no more records than these and one.
const WINDOW = 500;
const MAX_HELD_BYTES = 64 * 1024;

/** Returns at once; the records are read while the file is sent. */
export async function exportEvents(ctx: PoolContext, input: Input<'exportEvents'>): Promise<ExportedFile> {
  const { db, organizationId } = ctx;
  const filters = filtersOf(input);
  await sequenceEvents(db, organizationId);
  const { sequence: end, anchorSequence } = await readEventHead(db, organizationId);
  const begin = Math.max(input.afterSequence ?? 0, anchorSequence);
  const csv = input.format === 'csv';

  async function* read(signal: AbortSignal): AsyncGenerator<string> {
    if (csv) yield csvLine(Object.keys(csvColumns));
    for (let after = begin; after < end && !signal.aborted; ) {
      const last = Math.min(after + WINDOW, end);
      const rows = await db.query<EventRow & { found: number }>(sql`
        select * from (
          select r.*, count(*) over ()::integer as found,
            sum(octet_length(r.body::text)) over (order by r.sequence rows between unbounded preceding and 1 preceding) as before
          from (
            ${selectEvents(organizationId)} and e.sequence > ${after} and e.sequence <= ${last} ${conditions(filters)}) r) w
        where before is null or before < ${MAX_HELD_BYTES}
        order by sequence`);
      // Retention deleted records that were not read yet. Without this error, the file would look as if records had been removed.
      if ((await readEventHead(db, organizationId)).anchorSequence > after) {
        throw new Error('Records were dropped by retention while they were exported');
      }
      const isWhole = rows.length === (rows[0]?.found ?? 0);
      after = isWhole ? last : rows.at(-1)!.sequence;
      yield rows.map((row) => lineOf(viewEvent(row))).join('');
    }
  }

  function lineOf(event: Event): string {
    return csv ? csvLine(Object.values(csvColumns).map((of) => of(event))) : `${JSON.stringify(event)}\n`;
  }

  return fileOf('events', csv ? 'csv' : 'jsonl', read);
}

const csvColumns: Record<string, (event: Event) => string | number | null> = {
  sequence: ({ sequence }) => sequence,
  eventId: ({ eventId }) => eventId,
  occurredAt: ({ occurredAt }) => occurredAt,
  type: ({ type }) => type,
  outcome: ({ outcome }) => outcome,
  actorType: ({ actor }) => actor.type,
  actorId: ({ actor }) => actor.id,
  actorName: ({ actor }) => actor.name,
  resourceType: ({ resource }) => resource.type,
  resourceId: ({ resource }) => resource.id,
  environment: ({ environment }) => environment,
  sessionId: ({ sessionId }) => sessionId,
  changes: ({ changes }) => changes && JSON.stringify(changes),
  requestId: ({ context }) => context.requestId,
  ipAddress: ({ context }) => context.ipAddress,
  userAgent: ({ context }) => context.userAgent,
  previousHash: ({ previousHash }) => previousHash,
  hash: ({ hash }) => hash,
  // Last, because the columns before it are those of earlier releases.
  agentId: ({ agentId }) => agentId ?? null,
};
