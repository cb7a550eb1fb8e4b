// Deliveries as the API shows them.
import type { DestinationDelivery, Input, Result } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import { parseAttempt, viewAttempt } from '../../deliveries/stored-attempt.ts';
import { notFound } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';
import { pageOf, pageRequest } from '../../lib/page.ts';
import { resourceOfLane } from '../destination/filter.ts';
import { readDestination } from '../destination/view.ts';
import { readBody } from './deliveries.ts';
import { outgoing } from './sender.ts';

interface Row {
  deliveryId: string;
  lane: string;
  status: DestinationDelivery['status'];
  firstSequence: number;
  lastSequence: number;
  eventCount: number;
  previousSequence: number | null;
  attemptCount: number;
  dueAt: Date | null;
  createdAt: Date;
  finishedAt: Date | null;
}

const columns = sql`d.delivery_id as "deliveryId", d.lane, d.status, d.sequences[1] as "firstSequence",
  d.last_sequence as "lastSequence", cardinality(d.sequences) as "eventCount", d.previous_sequence as "previousSequence",
  d.attempt_count as "attemptCount", d.due_at as "dueAt", d.created_at as "createdAt", d.finished_at as "finishedAt"`;

/** Newest first. 404 if the destination does not exist. */
export async function listDestinationDeliveries(
  ctx: Context,
  input: Input<'listDestinationDeliveries'>,
): Promise<Result<'listDestinationDeliveries'>> {
  const { organizationId } = ctx;
  const destinationId = uuidOf('dst', input.destinationId);
  const request = pageRequest(`destination_deliveries:${destinationId}`, input);
  await readDestination(ctx.db, ctx, destinationId);
  const rows = await ctx.db.query<Row>(sql`
    select ${columns} from destination_deliveries d
    where d.organization_id = ${organizationId} and d.destination_id = ${destinationId}
      ${request.after === undefined ? empty : sql`and d.delivery_id < ${request.after}`}
      ${input.status === undefined ? empty : sql`and d.status = ${input.status}`}
    order by d.delivery_id desc limit ${request.limit + 1}`);
  return pageOf(
    request,
    rows,
    (row) => row.deliveryId,
    (row) => viewDelivery(input.destinationId, row),
  );
}

/** With its attempts and its body. 404 if it does not exist. */
export async function getDestinationDelivery(
  ctx: Context,
  input: Input<'getDestinationDelivery'>,
): Promise<Result<'getDestinationDelivery'>> {
  const { organizationId } = ctx;
  const [row] = await ctx.db.query<Row & { attempts: string[]; sequences: number[] }>(sql`
    select ${columns}, d.attempts, d.sequences from destination_deliveries d
    join destinations t on t.organization_id = d.organization_id and t.destination_id = d.destination_id
    where d.organization_id = ${organizationId} and d.destination_id = ${uuidOf('dst', input.destinationId)}
      and d.delivery_id = ${uuidOf('dsd', input.deliveryId)}`);
  if (!row) throw notFound('delivery');
  const attempts = row.attempts.map((text) => viewAttempt(outgoing(row), parseAttempt(text)));
  const body = await readBody(ctx.db, ctx, row.sequences);
  return {
    destinationDelivery: {
      ...viewDelivery(input.destinationId, row),
      attempts,
      requestBody: body?.toString() ?? null,
    },
  };
}

function viewDelivery(destinationId: string, row: Row): DestinationDelivery {
  const { lane, dueAt, createdAt, finishedAt, ...rest } = row;
  return {
    ...rest,
    deliveryId: formatId('dsd', row.deliveryId),
    destinationId,
    resource: resourceOfLane(lane),
    createdAt: createdAt.toISOString(),
    nextAttemptAt: dueAt?.toISOString() ?? null,
    finishedAt: finishedAt?.toISOString() ?? null,
  };
}
