// One look at a limit: which calls may be made now. In one transaction, under the lock of the limit's row, so the calls of all nodes
// take their turns in one order (order.ts).
//
// A call that must wait is a row of `model_limit_waits`, and its session is parked. When its time comes, whichever node looks marks the row
// as granted and lets any node claim the session, which then asks once more and makes the call. The row ends with that, or once its
// operation is no longer pending, because the turn was stopped.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../../db/db.ts';
import { inOrder } from './order.ts';
import { correct, freeAt, latestTurn, type Rate, SLICE_MS, type Slice, sliceAt, takeInOrder } from './window.ts';

/** What names a limit. `model`: `provider/model`, or `*`. */
export interface LimitKey {
  organizationId: string;
  environment: string;
  model: string;
}

/** A call that is to be made. */
export interface Asked {
  operationId: string;
  sessionId: string;
  /** What it will take, estimated. */
  tokens: number;
  since: Date;
}

/** A call that took another number of tokens than was estimated: in which slice, and how many more, or fewer. */
export interface Correction {
  startMs: number;
  moreTokens: number;
}

/**
 * `startMs`: the slice in which it took its tokens. `until`: when it is made at the latest, as far as is known now: calls of people may
 * come that go before it.
 */
export type Admission = { isAdmitted: true; startMs: number } | { isAdmitted: false; until: Date; rate: Rate };

export interface Turn {
  /** In the order of the calls that asked. */
  admissions: Admission[];
  /** Sessions that any node may claim now. */
  wokenSessionIds: string[];
  /** When to look again; undefined if no call waits. */
  nextMs: number | undefined;
}

interface Row extends Rate {
  isRemoved: boolean;
  taken: Slice[];
  passed: number;
}

interface Waiting extends Omit<Asked, 'since'> {
  /** Whether a person waits for it. */
  isAwaited: boolean;
  isGranted: boolean;
  isPending: boolean;
  isParked: boolean;
}

// Bounds the work under the lock, for each class. If all of them may be made, the next look follows at once.
const MOST_AT_ONCE = 500;
const UNLIMITED: Rate = { requestsPerMinute: null, tokensPerMinute: null };

export function takeTurn(
  db: Pick<Db, 'transaction'>,
  key: LimitKey,
  asked: readonly Asked[],
  corrections: readonly Correction[],
  now: Date,
): Promise<Turn> {
  return db.transaction(async (tx) => {
    // The second statement sees what was committed before the lock was granted.
    const [[limit], rows, awaited] = await Promise.all([
      lock(tx, key),
      readWaiting(tx, key, now),
      asked.length > 0 ? readAwaited(tx, key, asked) : [],
    ]);
    const nowMs = now.getTime();
    // The limit was removed, and nothing waited for it.
    if (!limit) return { admissions: asked.map(() => admittedAt(nowMs)), wokenSessionIds: [], nextMs: undefined };
    const corrected = corrections.reduce((taken, one) => correct(taken, one, nowMs), limit.taken);
    const rate = limit.isRemoved ? UNLIMITED : limit;
    const ofPeople = new Set(awaited.map(({ sessionId }) => sessionId));
    const calls = asked.map((call) => ({ ...call, isAwaited: ofPeople.has(call.sessionId) }));
    const decided = decide({ ...limit, ...rate, taken: corrected }, rows, calls, nowMs);
    const { admitted, granted, gone, added, queue, taken, passed, isComplete } = decided;
    const woken = [...rows.filter(isOverslept), ...granted].filter(({ operationId }) => !admitted.has(operationId));
    const [wokenSessionIds] = await Promise.all([
      woken.length > 0 ? wake(tx, key, woken, now) : [],
      tx.query(sql`update model_limits set taken = ${JSON.stringify(taken)}, passed = ${passed} where ${is(key)}`),
      ...(gone.length > 0 ? [tx.query(deleteWaits(key, gone))] : []),
      ...(granted.length > 0 ? [tx.query(grantWaits(key, granted))] : []),
      ...(added.length > 0 ? [tx.query(insertWaits(key, added))] : []),
    ]);
    const isWaiting = !isComplete || rows.length + added.length > gone.length;
    if (limit.isRemoved && !isWaiting) tx.write(sql`delete from model_limits where ${is(key)}`);
    return {
      admissions: asked.map(({ operationId }) =>
        admitted.has(operationId)
          ? admittedAt(nowMs)
          : { isAdmitted: false, rate, until: untilOf(rate, taken, queue, operationId, now) },
      ),
      wokenSessionIds,
      nextMs: isWaiting ? nextLook(rate, taken, { first: queue[0], isComplete }, nowMs) : undefined,
    };
  });
}

/** It was granted its turn at the moment when it was parked. */
function isOverslept({ isGranted, isPending, isParked }: Waiting): boolean {
  return isGranted && isPending && isParked;
}

type Queued = Pick<Waiting, 'operationId' | 'sessionId' | 'tokens' | 'isAwaited'>;

/** Which calls may be made, both of the calls that wait and of the calls that ask now. */
function decide(
  limit: Row,
  rows: readonly Waiting[],
  asked: readonly (Asked & Pick<Waiting, 'isAwaited'>)[],
  nowMs: number,
) {
  const asking = new Set(asked.map(({ operationId }) => operationId));
  const known = new Set(rows.map(({ operationId }) => operationId));
  const fresh = asked.filter(({ operationId }) => !known.has(operationId));
  const ofClass = (isAwaited: boolean) => {
    const ofIt = <Call extends Pick<Waiting, 'isAwaited'>>(calls: readonly Call[]) =>
      calls.filter((call) => call.isAwaited === isAwaited);
    const waiting = ofIt(rows).filter(({ isGranted }) => !isGranted);
    const isComplete = waiting.length < MOST_AT_ONCE;
    const pending = waiting.filter(({ isPending }) => isPending);
    // Calls that ask are behind all calls of their class that wait, also the ones that were not read.
    return {
      isComplete,
      calls: [...pending, ...(isComplete ? ofIt(fresh) : [])],
      behind: isComplete ? [] : ofIt(fresh),
    };
  };
  const classes = [ofClass(true), ofClass(false)] as const;
  const [ofPeople, others] = classes;
  const placed = inOrder<Queued>(ofPeople.calls, others.calls, limit.passed);
  const tokens = placed.map(({ call }) => call.tokens);
  const { count, taken } = takeInOrder(limit, limit.taken, tokens, nowMs);
  const waiting = placed.map(({ call }) => call);
  const inTurn = waiting.slice(0, count);
  const inTurnBefore = rows.filter(({ isGranted }) => isGranted);
  const admitted = new Set(
    [...inTurnBefore, ...inTurn].flatMap(({ operationId }) => (asking.has(operationId) ? [operationId] : [])),
  );
  return {
    taken,
    passed: placed[count - 1]?.passed ?? limit.passed,
    isComplete: classes.every(({ isComplete }) => isComplete),
    admitted,
    /** Rows that end: the call is made, or not needed any more. */
    gone: rows
      .filter(({ operationId, isPending }) => !isPending || admitted.has(operationId))
      .map(({ operationId }) => operationId),
    granted: inTurn.filter(({ operationId }) => known.has(operationId) && !asking.has(operationId)),
    added: fresh.filter(({ operationId }) => !admitted.has(operationId)),
    queue: [...waiting.slice(count), ...classes.flatMap(({ behind }) => behind)],
  };
}

function admittedAt(nowMs: number): Admission {
  return { isAdmitted: true, startMs: sliceAt(nowMs) };
}

function untilOf(
  rate: Rate,
  taken: readonly Slice[],
  queue: readonly Pick<Asked, 'operationId' | 'tokens'>[],
  operationId: string,
  now: Date,
): Date {
  const found = queue.findIndex((one) => one.operationId === operationId);
  const upTo = queue.slice(0, found === -1 ? undefined : found + 1);
  const ahead = { requests: upTo.length - 1, tokens: upTo.reduce((sum, { tokens }) => sum + tokens, 0) };
  return new Date(latestTurn(rate, taken, ahead, now.getTime()));
}

function nextLook(
  rate: Rate,
  taken: readonly Slice[],
  { first, isComplete }: { first: { tokens: number } | undefined; isComplete: boolean },
  nowMs: number,
): number {
  const soonMs = nowMs + SLICE_MS;
  if (first) return Math.max(freeAt(rate, taken, first.tokens, nowMs), soonMs);
  return isComplete ? soonMs : nowMs;
}

// ── Statements ───────────────────────────────────────────────────────────────────────────────────────────────────────

const is = ({ organizationId, environment, model }: LimitKey) =>
  sql`organization_id = ${organizationId} and environment = ${environment} and model = ${model}`;

function lock(tx: Tx, key: LimitKey): Promise<Row[]> {
  return tx.query<Row>(sql`
    select requests_per_minute as "requestsPerMinute", tokens_per_minute::float8 as "tokensPerMinute", is_removed as "isRemoved", taken,
      passed
    from model_limits where ${is(key)} for no key update`);
}

/**
 * Which sessions a person waits for, as far as it shows: the turn answers a message to a session that was open before, or was retried, or
 * a person opened the session, or it is for an end user. Not the first turn of a session that a schedule opened, or a key for no end
 * user. A child is as its root.
 */
function readAwaited(tx: Tx, { organizationId }: LimitKey, asked: readonly Asked[]): Promise<{ sessionId: string }[]> {
  return tx.query<{ sessionId: string }>(sql`
    select s.session_id as "sessionId" from sessions s
    join sessions r on r.organization_id = s.organization_id and r.session_id = coalesce(s.root_session_id, s.session_id)
    where s.organization_id = ${organizationId} and s.session_id = any(${asked.map(({ sessionId }) => sessionId)}::uuid[])
      and (r.turn > 1 or r.inbox > 0
        or exists (
          select from operations o
          where o.organization_id = r.organization_id and o.session_id = r.session_id and o.turn = r.turn
            and o.kind = 'model' and o.status = 'failed')
        or (r.key_id is null or r.end_user_id is not null) and not exists (
          select from schedule_runs x
          where x.organization_id = r.organization_id and x.session_id = r.session_id and not x.is_manual))`);
}

/** All granted calls, and the first of the calls that wait, of each class. */
function readWaiting(tx: Tx, key: LimitKey, now: Date): Promise<Waiting[]> {
  return tx.query<Waiting>(sql`
    select w.operation_id as "operationId", w.session_id as "sessionId", w.tokens::float8 as tokens, w.is_awaited as "isAwaited",
      w.is_granted as "isGranted",
      coalesce(o.status = 'pending', false) as "isPending",
      coalesce(s.node_id is null and s.status = 'waiting' and s.runnable_at > ${now}, false) as "isParked"
    from (
      (select * from model_limit_waits where ${is(key)} and is_granted)
      union all
      (select * from model_limit_waits where ${is(key)} and not is_granted and is_awaited
        order by since, operation_id limit ${MOST_AT_ONCE})
      union all
      (select * from model_limit_waits where ${is(key)} and not is_granted and not is_awaited
        order by since, operation_id limit ${MOST_AT_ONCE})) w
    left join operations o on o.organization_id = w.organization_id and o.operation_id = w.operation_id
    left join sessions s on s.organization_id = w.organization_id and s.session_id = w.session_id
    where w.organization_id = ${key.organizationId}
    order by w.is_granted desc, w.since, w.operation_id`);
}

function deleteWaits({ organizationId }: LimitKey, operationIds: readonly string[]) {
  return sql`
    delete from model_limit_waits
    where organization_id = ${organizationId} and operation_id = any(${[...operationIds]}::uuid[])`;
}

function grantWaits({ organizationId }: LimitKey, calls: readonly Pick<Asked, 'operationId'>[]) {
  return sql`
    update model_limit_waits set is_granted = true
    where organization_id = ${organizationId} and operation_id = any(${calls.map(({ operationId }) => operationId)}::uuid[])`;
}

/** A call that waits already keeps its place. After one model, it may wait for another. */
function insertWaits(key: LimitKey, calls: readonly (Asked & Pick<Waiting, 'isAwaited'>)[]) {
  return sql`
    insert into model_limit_waits as w (organization_id, environment, model, operation_id, session_id, tokens, is_awaited, since)
    select l.organization_id, l.environment, l.model, c.operation_id, c.session_id, c.tokens, c.is_awaited, c.since
    from model_limits l cross join unnest(
      ${calls.map(({ operationId }) => operationId)}::uuid[], ${calls.map(({ sessionId }) => sessionId)}::uuid[],
      ${calls.map(({ tokens }) => tokens)}::bigint[], ${calls.map(({ isAwaited }) => isAwaited)}::boolean[],
      ${calls.map(({ since }) => since)}::timestamptz[]
    ) c(operation_id, session_id, tokens, is_awaited, since)
    where ${is(key)}
    on conflict (organization_id, operation_id) do update
      set environment = excluded.environment, model = excluded.model, tokens = excluded.tokens, since = excluded.since,
        is_granted = false
      where w.model <> excluded.model`;
}

/** Lets any node claim the sessions that are parked already. */
async function wake(
  tx: Tx,
  { organizationId }: LimitKey,
  calls: readonly Pick<Asked, 'sessionId'>[],
  now: Date,
): Promise<string[]> {
  const rows = await tx.query<{ sessionId: string }>(sql`
    with found as (
      select s.session_id from sessions s
      where s.organization_id = ${organizationId} and s.session_id = any(${calls.map(({ sessionId }) => sessionId)}::uuid[])
        and s.node_id is null and s.status = 'waiting' and s.runnable_at > ${now}
      for no key update of s skip locked)
    update sessions s set runnable_at = ${now} from found f
    where s.organization_id = ${organizationId} and s.session_id = f.session_id and s.node_id is null
    returning s.session_id as "sessionId"`);
  const woken = new Set(rows.map(({ sessionId }) => sessionId));
  // In their order.
  return [...new Set(calls.map(({ sessionId }) => sessionId))].filter((sessionId) => woken.has(sessionId));
}
