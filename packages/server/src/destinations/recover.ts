// Sends records again: the reading goes back. Deliveries that wait are cancelled, because their records are in later ones, in order.
import type { Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { sequenceBefore } from '../events/range.ts';
import { recordEvent } from '../events/record.ts';
import { invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { sameDestination } from './destination/assignments.ts';
import { destinationEvent, lockDestination, viewDestination } from './destination/view.ts';
import { announce } from './destinations.ts';

/** 400 for a record or a time that is not there yet. What retention has deleted is not sent, and is no longer said to be lost. */
export async function recoverDestination(
  ctx: Context,
  input: Input<'recoverDestination'>,
): Promise<Result<'recoverDestination'>> {
  const { organizationId } = ctx;
  const { from } = input;
  const now = ctx.clock.now();
  const since = typeof from === 'string' ? instantOf(from, 'from') : undefined;
  if (since && since > now) throw invalidField('from', 'must not be in the future');
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockDestination(tx, ctx, uuidOf('dst', input.destinationId));
    const [head] = await tx.query<{ sequence: number; anchorSequence: number }>(sql`
      select sequence, anchor_sequence as "anchorSequence" from event_heads where organization_id = ${organizationId}`);
    const before = since ? await sequenceBefore(tx, organizationId, since) : Number(from) - 1;
    if (before >= head!.sequence && !since) {
      throw invalidField('from', `is ahead of the event log, whose last record is ${head!.sequence}`);
    }
    const readSequence = Math.max(before, head!.anchorSequence);
    await Promise.all([
      tx.query(sql`
        update destination_deliveries set status = 'cancelled', due_at = null, not_before = null, finished_at = ${now}
        where ${sameDestination(row)} and status = 'pending'`),
      tx.query(sql`
        update destinations set read_sequence = ${readSequence}, started = true, lost_from = null, lost_to = null,
          node_id = null, epoch = epoch + 1, updated_at = ${now}
        where ${sameDestination(row)}`),
      tx.query(recordEvent(ctx, now, destinationEvent(row, 'recovered', { from: [null, from] }))),
    ]);
    announce(tx, ctx);
    return { destination: viewDestination(ctx, { ...row, lostFrom: null, lostTo: null, updatedAt: now }) };
  });
}
