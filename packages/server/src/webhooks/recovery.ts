// Sending again from the journal (api.md section 7, `recover`). A Session is recovered by taking its deliveries back to where the
// caller says: from there on they are made and sent as ever, in order and one at a time, up to what is new.
//
// A request is a row of webhook_recoveries. The node that sends for the subscription works it off, oldest first and a few Sessions
// at a time: the next is taken back when one has nothing more to send or has failed. So however much is asked for, what is live
// goes on beside it, and a crash loses no more than the place in a page.
import type { Input, Result } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import { beginning, comparePositions, formatCursor, type Position } from '../journal/cursor.ts';
import { positionAfter, readHead } from '../journal/read.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { beforeAllSessions } from './due.ts';
import { cancel } from './finishing.ts';
import { type Held, isStill } from './holding.ts';
import { getWebhookSubscription } from './subscriptions.ts';

// Each Session has one delivery on its way, of 200 that may be.
export const MAX_RECOVERING = 10;
// How many may wait; who asks for more Sessions than this asks for a time.
const MAX_WAITING = 1_000;
// How many Sessions are looked at in one statement, most of which may have nothing.
const PAGE_SIZE = 250;

/** 404 where the Environment has no subscription or the Session is of another; 400 `invalid_cursor`; 409 where too many wait. */
export async function recoverDeliveries(
  ctx: Context,
  input: Input<'recoverDeliveries'>,
): Promise<Result<'recoverDeliveries'>> {
  const { organizationId } = ctx;
  const now = ctx.clock.now();
  const since = 'since' in input ? new Date(input.since) : null;
  if (since && since > now) throw invalidField('since', 'must not be in the future');
  return inTransaction(ctx, async (tx, ctx) => {
    // A second connection, asked for while one is held, is what many at once would wait for.
    const { webhookSubscription } = await getWebhookSubscription(ctx, input);
    const from = 'sessionId' in input ? await placeOf(tx, organizationId, input) : undefined;
    const webhookSubscriptionId = uuidOf('whs', webhookSubscription.webhookSubscriptionId);
    const [waiting] = await tx.query<{ count: number }>(sql`
      select count(*)::int as count from webhook_recoveries
      where organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}`);
    if (waiting!.count >= MAX_WAITING) {
      throw new ApiError(
        'conflict',
        'Too much waits to be recovered. Ask again later, or for all Sessions since a time.',
      );
    }
    await Promise.all([
      tx.query(sql`
        insert into webhook_recoveries (organization_id, webhook_subscription_id, recovery_id, since, session_id, turn, seq,
          after_session_id, created_at)
        values (${organizationId}, ${webhookSubscriptionId}, ${newUuid()}, ${since}, ${from?.sessionId},
          ${from?.position.turn}, ${from?.position.seq}, ${beforeAllSessions}, ${now})`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'webhook_delivery.recovered',
          resource: { type: 'webhook_subscription', id: webhookSubscription.webhookSubscriptionId },
          environment: webhookSubscription.environment,
          sessionId: from ? formatId('ses', from.sessionId) : null,
          changes: since ? { since: [null, since.toISOString()] } : { cursor: [null, formatCursor(from!.position)] },
        }),
      ),
    ]);
    return { webhookSubscription };
  });
}

async function placeOf(
  tx: Tx,
  organizationId: string,
  input: { env: string; sessionId: string; cursor: string },
): Promise<{ sessionId: string; position: Position }> {
  const sessionId = uuidOf('ses', input.sessionId);
  const head = await readHead(tx, organizationId, sessionId);
  if (head.environment !== input.env) throw notFound('session');
  return { sessionId, position: positionAfter(input.cursor, head) };
}

interface Recovery {
  recoveryId: string;
  since: Date | null;
  sessionId: string | null;
  turn: number;
  seq: number;
  afterSessionId: string;
}

/** Where the deliveries of a Session go back to. */
interface Target extends Position {
  sessionId: string;
}

/**
 * Takes up to `room` Sessions back. `isOver`: nothing more is to be recovered, or the subscription is no longer as it was held.
 */
export function takeBack(
  db: Db,
  held: Held,
  room: number,
  now: Date,
): Promise<{ sessionIds: string[]; isOver: boolean }> {
  const { organizationId, webhookSubscriptionId } = held;
  return db.transaction(async (tx) => {
    // Changes of the subscription wait for this, or were first.
    const current = await tx.execute(sql`
      select 1 from webhook_subscriptions where ${isStill(held)} and epoch = ${held.epoch} for key share`);
    const [recovery] = await tx.query<Recovery>(sql`
      select recovery_id as "recoveryId", since, session_id as "sessionId", turn, seq,
        after_session_id as "afterSessionId" from webhook_recoveries
      where organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
      order by recovery_id limit 1 for update`);
    if (current === 0 || !recovery) return { sessionIds: [], isOver: true };
    const { recoveryId, sessionId, turn, seq, since } = recovery;
    const page =
      since === null
        ? { targets: [{ sessionId: sessionId!, turn, seq }], afterSessionId: null }
        : await targetsSince(tx, held, recovery, since, room);
    const sessionIds = await moveBack(tx, held, page.targets, now);
    const place = sql`organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
      and recovery_id = ${recoveryId}`;
    await tx.query(
      page.afterSessionId === null
        ? sql`delete from webhook_recoveries where ${place}`
        : sql`update webhook_recoveries set after_session_id = ${page.afterSessionId} where ${place}`,
    );
    return { sessionIds, isOver: false };
  });
}

/** The next Sessions with a chunk of that time or later; no `afterSessionId` where there are no more. */
async function targetsSince(
  tx: Tx,
  { organizationId, environment }: Held,
  { recoveryId, afterSessionId }: Recovery,
  since: Date,
  room: number,
): Promise<{ targets: Target[]; afterSessionId: string | null }> {
  const segmentsOf = (sessionId: Sql) => sql`from segments r
    where r.organization_id = ${organizationId} and r.session_id = ${sessionId}`;
  // A segment is never older than those before it, so the last one says whether there is any to look for.
  const rows = await tx.query<{ sessionId: string; isFound: boolean; turn: number | null; seq: number | null }>(sql`
    select p.session_id as "sessionId", f.turn is not null as "isFound", b.turn, b.seq_to as seq
    from (
      select x.session_id, x.environment from sessions x
      where x.organization_id = ${organizationId} and x.session_id > ${afterSessionId} and x.session_id <= ${recoveryId}
      order by x.session_id limit ${PAGE_SIZE}) p
    left join lateral (
      select r.created_at ${segmentsOf(sql`p.session_id`)} and p.environment = ${environment}
      order by r.turn desc, r.seq_to desc limit 1) l on true
    left join lateral (
      select r.turn, r.seq_to ${segmentsOf(sql`p.session_id`)} and l.created_at >= ${since} and r.created_at >= ${since}
      order by r.turn, r.seq_to limit 1) f on true
    left join lateral (
      select r.turn, r.seq_to ${segmentsOf(sql`p.session_id`)} and (r.turn, r.seq_to) < (f.turn, f.seq_to)
      order by r.turn desc, r.seq_to desc limit 1) b on true
    order by p.session_id`);
  const targets: Target[] = [];
  for (const { sessionId, isFound, turn, seq } of rows) {
    if (targets.length === room) return { targets, afterSessionId: targets.at(-1)!.sessionId };
    if (isFound) targets.push({ sessionId, turn: turn ?? beginning.turn, seq: seq ?? beginning.seq });
  }
  return { targets, afterSessionId: rows.length === PAGE_SIZE ? rows.at(-1)!.sessionId : null };
}

/** The Sessions that stood further on; a delivery of theirs that is under way ends, as what it holds comes again. */
async function moveBack(tx: Tx, held: Held, targets: readonly Target[], now: Date): Promise<string[]> {
  if (targets.length === 0) return [];
  const { organizationId, environment, webhookSubscriptionId } = held;
  const sessionIds = targets.map(({ sessionId }) => sessionId);
  // A session without a chunk since the subscription was created is at its head.
  const isOurs = sql`s.delivery_subscription_id = ${webhookSubscriptionId}`;
  const isFurther = sql`s.organization_id = ${organizationId} and s.environment = ${environment} and s.session_id = b.sid
    and (case when ${isOurs} then s.delivered_turn else s.turn end,
      case when ${isOurs} then s.delivered_seq else s.next_seq - 1 end) > (b.turn, b.seq)`;
  const places = sql`unnest(${sessionIds}::uuid[], ${targets.map(({ turn }) => turn)}::int[],
    ${targets.map(({ seq }) => seq)}::bigint[],
    ${targets.map((target) => (comparePositions(target, beginning) === 0 ? '' : formatCursor(target)))}::text[])
    as b(sid, turn, seq, cursor)`;
  const further = await tx.query<{ sessionId: string }>(sql`
    select s.session_id as "sessionId" from sessions s join ${places} on s.session_id = b.sid
    where ${isFurther} order by s.session_id for no key update of s`);
  if (further.length === 0) return [];
  const moving = further.map(({ sessionId }) => sessionId);
  await Promise.all([
    ...cancel(held, moving, now).map((statement) => tx.query(statement)),
    tx.query(sql`
      update sessions s set delivered_turn = b.turn, delivered_seq = b.seq, delivery_due = true, delivery_id = null,
        acknowledged_cursor = b.cursor, delivery_subscription_id = ${webhookSubscriptionId}
      from ${places} where ${isFurther}`),
  ]);
  return moving;
}
