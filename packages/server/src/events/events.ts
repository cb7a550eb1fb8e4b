// Reading the event log: pages of records, and single records.
//
// A reader runs the sequencer first, so that it finds its own writes. Oldest first, a page that reaches the end says so in its
// cursor even if filters left out the last records, so following the log with filters scans each record once.
import { type Input, longLists, type Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import type { PoolContext } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { firstBytes, type IsKey, type PageRequest, pageOf, pageRequest } from '../lib/page.ts';
import { sequenceBounds } from './range.ts';
import { type EventRow, selectEvents, selectPage, viewEvent } from './select.ts';
import { readEventHead, sequenceEvents } from './sequencer.ts';

type ListInput = Input<'listEvents'>;

/** A sequence number that is exact as a JavaScript number. */
const isKey: IsKey = (text) => /^\d{1,15}$/.test(text);

/**
 * Newest first, or oldest first with `order=asc`; the caller's own writes are in it. With `wait` it returns as soon as there
 * is a record, or an empty page if there is none in time.
 */
export async function listEvents(ctx: PoolContext, input: Input<'listEvents'>): Promise<Result<'listEvents'>> {
  const { organizationId } = ctx;
  const ascending = input.order === 'asc';
  const wait = input.wait ?? 0;
  if (wait > 0 && !ascending) throw invalidField('wait', 'is only allowed with order=asc');
  const list = `events:${input.order ?? 'desc'}:${organizationId}`;
  const request = pageRequest(list, input, { isKey, defaultLimit: longLists.default });
  if (!ascending) return readNewest(ctx, request, input);
  const until = ctx.clock.now().getTime() + wait * 1000;
  for (let from = Number(request.after ?? 0), waits = wait > 0; ; ) {
    const { page, end } = await readOldest(ctx, request, from, input);
    if (page.data.length > 0 || !waits) return page;
    from = end;
    waits = await ctx.eventWatch.after(organizationId, end, until - ctx.clock.now().getTime(), ctx.signal);
  }
}

const bodyBytes = sql`octet_length(body::text)`;

async function readNewest(ctx: PoolContext, request: PageRequest, input: ListInput): Promise<Result<'listEvents'>> {
  await sequenceEvents(ctx.db, ctx.organizationId);
  const from = request.after === undefined ? [] : [sql`and e.sequence < ${Number(request.after)}`];
  const bounds = await boundsOf(ctx, input);
  const page = selectPage(ctx.organizationId, input, [...from, ...bounds], sql`desc`, request.limit + 1);
  const rows = await ctx.db.query<EventRow>(firstBytes(page, { order: sql`sequence desc`, bytes: bodyBytes }));
  return pageOf(request, rows, keyOf, viewEvent);
}

async function readOldest(
  ctx: PoolContext,
  request: PageRequest,
  after: number,
  input: ListInput,
): Promise<{ page: Result<'listEvents'>; end: number }> {
  const { db, organizationId } = ctx;
  await sequenceEvents(db, organizationId);
  const { sequence: end } = await readEventHead(db, organizationId);
  // After the log was restored from a backup: continuing would skip the records that get these numbers next.
  if (after > end) throw new ApiError('invalid_cursor', 'cursor: is ahead of the event log.');
  // Computed after the head was read, so a record that is written in between is not missed.
  const bounds = await boundsOf(ctx, input);
  const from = [sql`and e.sequence > ${after}`, sql`and e.sequence <= ${end}`];
  const page = selectPage(organizationId, input, [...from, ...bounds], empty, request.limit + 1);
  const rows = await db.query<EventRow>(firstBytes(page, { order: sql`sequence`, bytes: bodyBytes }));
  return { page: pageOf(request, rows, keyOf, viewEvent, end > 0 ? String(end) : undefined), end };
}

function boundsOf({ db, organizationId }: PoolContext, { since, until }: ListInput): Promise<Sql[]> {
  return sequenceBounds(
    db,
    organizationId,
    since === undefined ? undefined : instantOf(since, 'since'),
    until === undefined ? undefined : instantOf(until, 'until'),
  );
}

const keyOf = ({ sequence }: EventRow) => String(sequence);

/** One record; 404 if there is none with this id. */
export async function getEvent(ctx: PoolContext, input: Input<'getEvent'>): Promise<Result<'getEvent'>> {
  await sequenceEvents(ctx.db, ctx.organizationId);
  const [row] = await ctx.db.query<EventRow>(sql`
    ${selectEvents(ctx.organizationId)} and e.event_id = ${uuidOf('evt', input.eventId)}`);
  if (!row) throw notFound('event');
  return { event: viewEvent(row) };
}
