// Matches steps that are offered to workers with the claims that wait for them.
//
// A node offers a step by releasing its session with a `queue` (index sessions_offered). A claim writes a new worker turn id to
// the row as its `node_id` and raises the epoch, as a node does. The id has a row in `nodes`, so a worker that died is detected
// as a dead node is.
//
// All claims that wait on this node are matched together, after a wake-up or by the poll: first the claims for that session,
// then those that have waited longest. However many queues there are, this takes one or two statements for each 32
// organizations.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { OVER } from '../lib/aborted.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { coalesced } from '../lib/coalesced.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type SessionRow, sessionColumns } from '../session-rows/session.ts';
import { releaseClaim } from './claims.ts';

/** How long a claim lasts without a heartbeat. */
export const LEASE_SECONDS = 30;
// Finds offers whose wake-up was lost.
const POLL_MS = 2_000;
// Each has an open connection and some hundred bytes.
const MAX_WAITING = 5_000;
// One organization can't use all of them. A worker waits with a few claims for its queue and one for each turn that it runs.
const MAX_WAITING_OF_ORGANIZATION = 2_000;

/** Which step a claim accepts. */
export interface ClaimRequest {
  organizationId: string;
  /** The ID that retries of a claim share; undefined: the claim can't be retried. */
  claimId?: string | undefined;
  queue: string;
  environment?: string | undefined;
  /** Only of these agents. */
  agents?: readonly string[] | undefined;
  /** Only the next step of this session, and of this turn. */
  sessionId?: string | undefined;
  turn?: number | undefined;
}

export interface Offers {
  /**
   * Resolves with the claimed session, or with undefined if nothing was offered in this time, the signal was aborted or the
   * node stops. Throws 409 `turn_lost` if the requested turn can have no more steps, 404 if there is no such session, and 503 if
   * too many claims wait.
   */
  claim(request: ClaimRequest, waitMs: number, signal: AbortSignal): Promise<SessionRow | undefined>;
  start(): void;
  stop(): Promise<void>;
}

interface WaitingClaim {
  readonly request: ClaimRequest;
  /** It is matched once and does not wait. */
  readonly once: boolean;
  settled: boolean;
  settle(row: SessionRow | undefined): void;
  refuse(error: unknown): void;
}

interface OfferedSession {
  sessionId: string;
  epoch: number;
}

/** The columns that say whether a session is offered. */
type SessionState = OfferedSession & Pick<SessionRow, 'status' | 'turn' | 'nodeId' | 'queue' | 'stop' | 'endedAt'>;

export function createOffers(platform: Pick<Platform, 'db' | 'shards' | 'clock' | 'wake'>): Offers {
  const { db, shards, clock, wake } = platform;
  /** Claims for any session of a queue. */
  const forQueue = new Map<string, Set<WaitingClaim>>();
  const forSession = new Map<string, Set<WaitingClaim>>();
  const stopping = new AbortController();
  const unsubscribe: (() => void)[] = [];
  let polling: Promise<void> | undefined;
  let matching: Promise<void> | undefined;
  /** Claims that the next match includes. */
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
    // Claims and hints that arrive in one turn of the event loop are matched together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (unmatched.size === 0) return;
    const waiters = [...unmatched].filter(({ settled }) => !settled);
    unmatched = new Set();
    const { forOne = [], forAny = [] } = Object.groupBy(waiters, ({ request }) =>
      request.sessionId ? 'forOne' : 'forAny',
    );
    const failures = [
      ...(await shards.forEachShardWithTimeout(
        'looking at offered worker turns',
        forOne,
        organizationOf,
        matchSessions,
      )),
      ...(await shards.forEachShardWithTimeout(
        'looking for offered worker turns',
        forAny,
        organizationOf,
        matchQueues,
      )),
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
      ...Map.groupBy(
        waiters,
        ({ request }) => `${queueOf(request)} ${request.environment ?? ''} ${request.agents ?? ''}`,
      ).values(),
    ];
    const requests = groups.map(([first]) => first!.request);
    const organizations = requests.map(({ organizationId }) => organizationId);
    const most = Math.max(...groups.map(({ length }) => length)) + forSession.size;
    const rows = await db.query<OfferedSession & { n: number }>(sql`
      select h.n::integer, s.session_id as "sessionId", s.epoch
      from unnest(${organizations}::uuid[], ${requests.map(({ queue }) => queue)}::text[],
        ${requests.map(({ environment }) => environment ?? null)}::text[],
        ${requests.map(({ agents }) => (agents ? `{${agents.join()}}` : null))}::text[])
        with ordinality as h(org, queue, environment, agents, n)
      cross join lateral (
        select x.session_id, x.epoch from sessions x
        where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
          and x.queue = h.queue and x.node_id is null and x.stop is null and x.runnable_at > ${clock.now()}
          and (h.environment is null or x.environment = h.environment)
          and (h.agents is null or x.agent_id = any(h.agents::uuid[]))
        order by x.session_id limit ${most}) s
      order by h.n, s.session_id`);
    const found = Map.groupBy(rows, ({ n }) => n);
    await Promise.all(groups.map((group, index) => matchQueue(found.get(index + 1) ?? [], group)));
  }

  /** All claims are for the same queue, environment and agents. */
  async function matchQueue(candidates: readonly OfferedSession[], waiters: readonly WaitingClaim[]): Promise<void> {
    const { organizationId, queue } = waiters[0]!.request;
    // A session that a claim waits for by its id is left to that claim.
    const keptFor = candidates.map(({ sessionId }) =>
      [...(forSession.get(sessionId) ?? [])].filter(
        ({ request, settled }) => !settled && request.organizationId === organizationId && request.queue === queue,
      ),
    );
    matchSoon(keptFor.flat());
    const free = candidates.filter((_, index) => keptFor[index]!.length === 0).slice(0, waiters.length);
    const given = await Promise.all(free.map((candidate, index) => assign(candidate, waiters[index]!)));
    // Another claim was first; there may be more steps.
    if (given.includes(false)) matchSoon(waiters.filter(({ settled, once }) => !settled && !once));
  }

  /** Returns whether the waiter took it. */
  async function assign(candidate: OfferedSession, waiter: WaitingClaim): Promise<boolean> {
    if (waiter.settled) return false;
    const claimed = await claimOffered(platform, waiter.request, candidate);
    if (claimed === 'used') waiter.settle(await findEarlierClaim(db, waiter.request));
    if (!claimed || claimed === 'used') return false;
    if (waiter.settled) {
      await releaseClaim(platform, claimed);
      return true;
    }
    waiter.settle(claimed);
    for (const repeated of repetitionsOf(waiter)) repeated.settle(claimed);
    return true;
  }

  /** The same request, sent again while the first still waits on this node: both get the step. */
  function repetitionsOf({ request }: WaitingClaim): WaitingClaim[] {
    if (request.claimId === undefined) return [];
    const [waiters, key] = groupOf(request);
    return [...(waiters.get(key) ?? [])].filter((other) => !other.settled && other.request.claimId === request.claimId);
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
        settled.abort(OVER);
      }
    },

    start() {
      unsubscribe.push(
        wake.subscribe('offered', (hint) => {
          if (hint) matchSoon([...(forSession.get(hint.sessionId) ?? []), ...(forQueue.get(queueOf(hint)) ?? [])]);
          else matchSoon(allWaiting());
        }),
        // The turn that a claim waits for may have ended.
        wake.subscribe('journal', (hint) => {
          if (hint) matchSoon(forSession.get(hint.sessionId) ?? []);
        }),
      );
      polling = poll();
    },

    async stop() {
      for (const stopListening of unsubscribe) stopListening();
      stopping.abort(OVER);
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
 * Claims the session if it is still as the candidate says; `used`: this claim already has one. Every claim has a new worker turn
 * id, so a request that was sent for an earlier step can't change a later one.
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
        // First, so that a retry of a claim that waits on another node can't claim a second step.
        tx.execute(sql`
          insert into nodes as w (node_id, lease_expires_at, claim, reads_tail)
          values (${workerTurnId}, now() + ${LEASE_SECONDS} * interval '1 second', ${claimId ?? null}, true)
          on conflict (claim) do nothing`),
        tx.query<SessionRow>(sql`
          update sessions s set epoch = s.epoch + 1, node_id = ${workerTurnId}, appended_characters = 0
          where s.organization_id = ${organizationId} and s.session_id = ${sessionId} and s.epoch = ${epoch}
            and s.node_id is null and s.queue = ${queue} and s.stop is null and s.runnable_at > ${now}
          returning ${sessionColumns}`),
        // The worker runs these from now on. If it dies, it is unknown whether they had their effect.
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

/** The session that an earlier request of the same claim got, whose response was lost. */
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
