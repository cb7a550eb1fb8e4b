// What is offered to the integrator's own programs, and the claims that wait for it.
//
// The service's worker offers a step by letting go of its Session with a `queue` (index sessions_offered). A claim puts a
// worker turn's own id on the row as its `node_id` and moves the epoch on, as a worker of the service does; the id has a row
// of its own in `workers`, so that a program that died is found as a node is.
//
// Claims of this node wait together: one look, begun by a wake-up or by the poll, hands what it finds to those who wait, first
// to who waits for that very Session, then to who waits longest. However many queues are waited for, a look is a statement or two
// for each 32 organizations.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { coalesced } from '../lib/coalesced.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type SessionRow, sessionColumns } from '../sessions/state/session.ts';
import { releaseClaim } from './claims.ts';

/** How long a program that is not heard of keeps its step. */
export const LEASE_SECONDS = 30;
// The net under lost wake-ups.
const POLL_MS = 2_000;
// Each is an open connection and some hundred bytes.
const MAX_WAITING = 5_000;
// So that no organization takes all of them. A program waits with some claims for its queue, and one for each turn of its own.
const MAX_WAITING_OF_ORGANIZATION = 2_000;

/** What a claim asks for. */
export interface ClaimRequest {
  organizationId: string;
  /** The same for a claim that is sent again; undefined: it is not. */
  claimId?: string | undefined;
  queue: string;
  environment?: string | undefined;
  /** Only what comes next of this Session, and of this turn of it. */
  sessionId?: string | undefined;
  turn?: number | undefined;
}

export interface Offers {
  /**
   * Resolves with the Session as it was claimed, or undefined where nothing was offered in this time, the signal was aborted
   * or the node stops. Throws 409 `turn_lost` where nothing can come any more of the turn that is wanted, 404 where there is
   * no such Session, and 503 where too many wait.
   */
  claim(request: ClaimRequest, waitMs: number, signal: AbortSignal): Promise<SessionRow | undefined>;
  start(): void;
  stop(): Promise<void>;
}

interface WaitingClaim {
  readonly request: ClaimRequest;
  /** It has one look and does not wait. */
  readonly once: boolean;
  settled: boolean;
  settle(row: SessionRow | undefined): void;
  refuse(error: unknown): void;
}

interface OfferedSession {
  sessionId: string;
  epoch: number;
}

/** What a Session's row says of whether it is offered. */
type SessionState = OfferedSession & Pick<SessionRow, 'status' | 'turn' | 'nodeId' | 'queue' | 'stop' | 'endedAt'>;

export function createOffers(platform: Pick<Platform, 'db' | 'shards' | 'clock' | 'wake'>): Offers {
  const { db, shards, clock, wake } = platform;
  /** Waiters for any session of a queue. */
  const forQueue = new Map<string, Set<WaitingClaim>>();
  const forSession = new Map<string, Set<WaitingClaim>>();
  const stopping = new AbortController();
  const unsubscribe: (() => void)[] = [];
  let polling: Promise<void> | undefined;
  let matching: Promise<void> | undefined;
  /** Who is looked for next. */
  let unmatched = new Set<WaitingClaim>();
  let count = 0;
  const countOf = new Map<string, number>();

  // ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────

  function matchSoon(waiters: Iterable<WaitingClaim>): void {
    for (const waiter of waiters) unmatched.add(waiter);
    if (unmatched.size === 0 || stopping.signal.aborted) return;
    matching = matchAll();
  }

  const matchAll = coalesced(async () => {
    // What arrives in one turn of the event loop is looked for together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (unmatched.size === 0) return;
    const waiters = [...unmatched].filter(({ settled }) => !settled);
    unmatched = new Set();
    const { forOne = [], forAny = [] } = Object.groupBy(waiters, ({ request }) =>
      request.sessionId ? 'forOne' : 'forAny',
    );
    const failures = [
      ...(await shards.eachInTime('looking at offered worker turns', forOne, organizationOf, matchSessions)),
      ...(await shards.eachInTime('looking for offered worker turns', forAny, organizationOf, matchQueues)),
    ];
    for (const { error, items } of failures) {
      for (const waiter of items) if (waiter.once && !waiter.settled) waiter.refuse(error);
    }
    for (const waiter of waiters) if (waiter.once && !waiter.settled) waiter.settle(undefined);
  });

  async function matchSessions(waiters: readonly WaitingClaim[]): Promise<void> {
    const organizations = waiters.map(organizationOf);
    const rows = await db.query<SessionState>(sql`
      select h.sid as "sessionId", s.epoch, s.status, s.turn, s.node_id as "nodeId", s.queue, s.stop,
        s.ended_at as "endedAt"
      from unnest(${organizations}::uuid[], ${waiters.map(({ request }) => request.sessionId!)}::uuid[]) as h(org, sid)
      cross join lateral (
        select x.epoch, x.status, x.turn, x.node_id, x.queue, x.stop, x.ended_at from sessions x
        where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
          and x.session_id = h.sid
        limit 1) s`);
    const bySession = new Map(rows.map((row) => [row.sessionId, row]));
    await Promise.all(waiters.map((waiter) => matchSession(bySession.get(waiter.request.sessionId!), waiter)));
  }

  async function matchSession(row: SessionState | undefined, waiter: WaitingClaim): Promise<void> {
    const { queue, turn } = waiter.request;
    if (!row) return waiter.refuse(notFound('session'));
    if (row.endedAt || row.status === 'idle' || (turn !== undefined && row.turn !== turn))
      return waiter.refuse(new ApiError('turn_lost', 'The turn has ended.'));
    const isOffered = row.nodeId === null && row.queue === queue && row.stop === null;
    if (isOffered) await assign(row, waiter);
  }

  async function matchQueues(waiters: readonly WaitingClaim[]): Promise<void> {
    const groups = [
      ...Map.groupBy(waiters, ({ request }) => `${queueOf(request)} ${request.environment ?? ''}`).values(),
    ];
    const requests = groups.map(([first]) => first!.request);
    const organizations = requests.map(({ organizationId }) => organizationId);
    const most = Math.max(...groups.map(({ length }) => length)) + forSession.size;
    const rows = await db.query<OfferedSession & { n: number }>(sql`
      select h.n::integer, s.session_id as "sessionId", s.epoch
      from unnest(${organizations}::uuid[], ${requests.map(({ queue }) => queue)}::text[],
        ${requests.map(({ environment }) => environment ?? null)}::text[]) with ordinality as h(org, queue, environment, n)
      cross join lateral (
        select x.session_id, x.epoch from sessions x
        where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
          and x.queue = h.queue and x.node_id is null and x.stop is null and x.runnable_at > ${clock.now()}
          and (h.environment is null or x.environment = h.environment)
        order by x.session_id limit ${most}) s
      order by h.n, s.session_id`);
    const found = Map.groupBy(rows, ({ n }) => n);
    await Promise.all(groups.map((group, index) => matchQueue(found.get(index + 1) ?? [], group)));
  }

  /** To claims for the same queue and environment. */
  async function matchQueue(candidates: readonly OfferedSession[], waiters: readonly WaitingClaim[]): Promise<void> {
    const { organizationId, queue } = waiters[0]!.request;
    // A look that begins for another Session may find it before the one that begins for its own.
    const keptFor = candidates.map(({ sessionId }) =>
      [...(forSession.get(sessionId) ?? [])].filter(
        ({ request, settled }) => !settled && request.organizationId === organizationId && request.queue === queue,
      ),
    );
    matchSoon(keptFor.flat());
    const free = candidates.filter((_, index) => keptFor[index]!.length === 0).slice(0, waiters.length);
    const given = await Promise.all(free.map((candidate, index) => assign(candidate, waiters[index]!)));
    // Somebody else took what was found; there may be more behind it.
    if (given.includes(false)) matchSoon(waiters.filter(({ settled, once }) => !settled && !once));
  }

  /** Returns whether the waiter took it. */
  async function assign(candidate: OfferedSession, waiter: WaitingClaim): Promise<boolean> {
    if (waiter.settled) return false;
    const claimed = await claimOffered(platform, waiter.request, candidate);
    if (claimed === 'used') waiter.settle(await findEarlierClaim(db, waiter.request));
    if (!claimed || claimed === 'used') return false;
    if (waiter.settled) await releaseClaim(platform, claimed);
    else waiter.settle(claimed);
    return true;
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(POLL_MS, stopping.signal).catch(() => {});
      matchSoon(allWaiting());
    }
  }

  function allWaiting(): WaitingClaim[] {
    return [...forSession.values(), ...forQueue.values()].flatMap((waiters) => [...waiters]);
  }

  // ── Waiting ────────────────────────────────────────────────────────────────────────────────────────────────────────

  function enter(waiter: WaitingClaim): void {
    const { organizationId } = waiter.request;
    count += 1;
    countOf.set(organizationId, (countOf.get(organizationId) ?? 0) + 1);
    const [waiters, key] = groupOf(waiter.request);
    waiters.set(key, (waiters.get(key) ?? new Set()).add(waiter));
    matchSoon([waiter]);
  }

  function leave(waiter: WaitingClaim): void {
    const { organizationId } = waiter.request;
    count -= 1;
    const left = countOf.get(organizationId)! - 1;
    if (left === 0) countOf.delete(organizationId);
    else countOf.set(organizationId, left);
    const [waiters, key] = groupOf(waiter.request);
    const others = waiters.get(key);
    others?.delete(waiter);
    if (others?.size === 0) waiters.delete(key);
  }

  function groupOf(request: ClaimRequest): [Map<string, Set<WaitingClaim>>, string] {
    return request.sessionId === undefined ? [forQueue, queueOf(request)] : [forSession, request.sessionId];
  }

  return {
    async claim(request, waitMs, signal) {
      const over = AbortSignal.any([signal, stopping.signal]);
      if (over.aborted) return undefined;
      if (count >= MAX_WAITING || (countOf.get(request.organizationId) ?? 0) >= MAX_WAITING_OF_ORGANIZATION)
        throw new ApiError('unavailable', 'Too many claims are waiting on this node.', { retryAfterSeconds: 1 });
      const { promise, resolve, reject } = Promise.withResolvers<SessionRow | undefined>();
      const settled = new AbortController();
      const waiter: WaitingClaim = {
        request,
        once: waitMs === 0,
        settled: false,
        settle(row) {
          waiter.settled = true;
          resolve(row);
        },
        refuse(error) {
          waiter.settled = true;
          reject(error);
        },
      };
      enter(waiter);
      if (waitMs > 0) {
        void clock.sleep(waitMs, AbortSignal.any([over, settled.signal])).then(
          () => waiter.settle(undefined),
          () => waiter.settle(undefined),
        );
      }
      try {
        return await promise;
      } finally {
        leave(waiter);
        settled.abort();
      }
    },

    start() {
      unsubscribe.push(
        wake.subscribe('offered', (hint) => {
          if (hint) matchSoon([...(forSession.get(hint.sessionId) ?? []), ...(forQueue.get(queueOf(hint)) ?? [])]);
          else matchSoon(allWaiting());
        }),
        // The turn that a claim waits for may be over.
        wake.subscribe('journal', (hint) => {
          if (hint) matchSoon(forSession.get(hint.sessionId) ?? []);
        }),
      );
      polling = poll();
    },

    async stop() {
      for (const stopListening of unsubscribe) stopListening();
      stopping.abort();
      await polling;
      await matching;
    },
  };
}

function organizationOf({ request }: WaitingClaim): string {
  return request.organizationId;
}

function queueOf({ organizationId, queue }: Pick<ClaimRequest, 'organizationId' | 'queue'>): string {
  return `${organizationId} ${queue}`;
}

/**
 * Takes the Session where it still is as the candidate says; `used`: this claim has one already. Each time the worker turn has an id
 * of its own: what was sent for a step that is over can't end up in another.
 */
async function claimOffered(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  request: ClaimRequest,
  candidate: OfferedSession,
): Promise<SessionRow | 'used' | undefined> {
  const { organizationId, claimId, queue } = request;
  const { sessionId, epoch } = candidate;
  const workerTurnId = newUuid();
  const now = clock.now();
  try {
    return await db.transaction(async (tx) => {
      const [isNew, [row]] = await Promise.all([
        // First, so that a claim that is sent again while it waits elsewhere takes nothing second.
        tx.execute(sql`
          insert into nodes as w (node_id, lease_expires_at, claim)
          values (${workerTurnId}, now() + ${LEASE_SECONDS} * interval '1 second', ${claimId ?? null})
          on conflict (claim) do nothing`),
        tx.query<SessionRow>(sql`
          update sessions s set epoch = s.epoch + 1, node_id = ${workerTurnId}
          where s.organization_id = ${organizationId} and s.session_id = ${sessionId} and s.epoch = ${epoch}
            and s.node_id is null and s.queue = ${queue} and s.stop is null and s.runnable_at > ${now}
          returning ${sessionColumns}`),
        // The program runs these from now on: should it die, nobody knows whether they had their effect.
        tx.execute(sql`
          update operations o set status = 'running', started_at = ${now}
          from sessions s
          where s.organization_id = ${organizationId} and s.session_id = ${sessionId} and s.node_id = ${workerTurnId}
            and o.organization_id = s.organization_id and o.session_id = s.session_id and o.turn = s.turn
            and o.status = 'awaiting_result'`),
      ]);
      if (isNew === 0) throw new NotClaimed('used');
      if (!row) throw new NotClaimed(undefined);
      return row;
    });
  } catch (error) {
    if (error instanceof NotClaimed) return error.why;
    throw error;
  }
}

/** Undoes the transaction. */
class NotClaimed extends Error {
  readonly why: 'used' | undefined;
  constructor(why: 'used' | undefined) {
    super('Not claimed');
    this.why = why;
  }
}

/** What this very claim has got already: it was sent again because its answer was lost. */
export async function findEarlierClaim(
  db: Db,
  { organizationId, claimId }: ClaimRequest,
): Promise<SessionRow | undefined> {
  if (claimId === undefined) return undefined;
  const [row] = await db.query<SessionRow>(sql`
    select ${sessionColumns} from sessions s
    where s.organization_id = ${organizationId}
      and s.node_id = (select w.node_id from nodes w where w.claim = ${claimId})`);
  return row;
}
