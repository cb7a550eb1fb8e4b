// Finding sessions to claim, without locks: a candidate is then claimed only if its row has not changed.
//
// A wake-up names its session, so it needs no search. Sessions without a wake-up are found in pages of a bounded number of index
// entries, however long the backlog of one organization is:
//
// - running sessions, organization by organization (index sessions_ready). If a page ends within an organization, the next begins
//   with the organization after it, so each is visited once per round.
// - sessions with a deadline that has passed (of an approval or of an offered step), oldest first (index sessions_timed).
// - those of nodes and workers whose lease has expired.
//
// A search finds only the node's share of the sessions that were just left or became due (share.ts).
import sql, { empty } from 'sql-template-tag';
import type { Platform } from '../../platform.ts';
import { isIn, SHARE_MS, type Share } from '../../session-rows/share.ts';
import type { SessionHint } from '../../wake/hints.ts';
import { notSuspicious } from './crashes.ts';

/** A session that may be claimed as long as it has this epoch. */
export interface ClaimCandidate extends SessionHint {
  epoch: number;
  /** The dead node that had it; null if none had. */
  nodeId: string | null;
  /** Before it is claimed. */
  crashes: number;
}

export const PAGE_SIZE = 200;

/** The hinted sessions that may be claimed now. */
export async function hintedCandidates(
  { db, shards, clock }: Pick<Platform, 'db' | 'shards' | 'clock'>,
  hints: readonly SessionHint[],
): Promise<ClaimCandidate[]> {
  const found: ClaimCandidate[] = [];
  await shards.forEachShardWithTimeout(
    'looking for sessions to claim',
    hints,
    ({ organizationId }) => organizationId,
    async (group) => {
      const organizations = group.map(({ organizationId }) => organizationId);
      const rows = await db.query<ClaimCandidate>(sql`
        select h.org as "organizationId", h.sid as "sessionId", s.epoch, s.crashes, null as "nodeId"
        from unnest(${organizations}::uuid[], ${group.map(({ sessionId }) => sessionId)}::uuid[]) as h(org, sid)
        cross join lateral (
          select x.epoch, x.crashes from sessions x
          where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
            and x.session_id = h.sid and x.node_id is null and x.runnable_at <= ${clock.now()}
          limit 1) s`);
      for (const row of rows) found.push(row);
    },
  );
  // Rows that arrive after this are found by the poll.
  return [...found];
}

/** A page of running sessions without a node, of organizations after this one; in each, the longest waiting first. */
export async function readyCandidates(
  { shards, clock }: Pick<Platform, 'shards' | 'clock'>,
  organizationId: string,
  share: Share,
): Promise<ClaimCandidate[]> {
  const now = clock.now();
  const { rows } = await shards.query<ClaimCandidate & { runnableAt: Date }>(
    'looking for running sessions',
    (within) => sql`
    select organization_id as "organizationId", session_id as "sessionId", epoch, crashes, node_id as "nodeId",
      runnable_at as "runnableAt"
    from sessions
    where node_id is null and runnable_at is not null and queue is null and status = 'running' and organization_id > ${organizationId}
      and runnable_at <= ${now} and (runnable_at <= ${new Date(now.getTime() - SHARE_MS)} or ${isIn(share)}) ${within()}
    order by organization_id, runnable_at limit ${PAGE_SIZE}`,
  );
  // Each database server may return a full page.
  return rows
    .toSorted((a, b) => compare(a.organizationId, b.organizationId) || a.runnableAt.getTime() - b.runnableAt.getTime())
    .slice(0, PAGE_SIZE);
}

export interface TimedCandidate extends ClaimCandidate {
  runnableAt: Date;
}

/** A page of sessions whose deadline has passed, after this one. */
export async function timedCandidates(
  { shards, clock }: Pick<Platform, 'shards' | 'clock'>,
  { runnableAt, sessionId }: Pick<TimedCandidate, 'runnableAt' | 'sessionId'>,
  share: Share,
): Promise<TimedCandidate[]> {
  const now = clock.now();
  const { rows } = await shards.query<TimedCandidate>(
    'looking for sessions whose time has come',
    (within) => sql`
    select organization_id as "organizationId", session_id as "sessionId", epoch, crashes, node_id as "nodeId",
      runnable_at as "runnableAt"
    from sessions
    where node_id is null and runnable_at is not null and (queue is not null or status <> 'running')
      and (runnable_at, session_id) > (${runnableAt}, ${sessionId}) and runnable_at <= ${now}
      and (runnable_at <= ${new Date(now.getTime() - SHARE_MS)} or ${isIn(share)}) ${within()}
    order by runnable_at, session_id limit ${PAGE_SIZE}`,
  );
  return rows
    .toSorted((a, b) => a.runnableAt.getTime() - b.runnableAt.getTime() || compare(a.sessionId, b.sessionId))
    .slice(0, PAGE_SIZE);
}

export interface DeadNodes {
  dead: readonly string[];
  /** The ones whose sessions are for each node's share alone. */
  recentlyDead: readonly string[];
  share: Share;
}

/**
 * A page of the sessions of dead nodes, without sessions of full organizations, and without suspects (crashes.ts) if one is active
 * already.
 */
export async function findOrphanedSessions(
  { shards }: Pick<Platform, 'shards'>,
  { dead, recentlyDead, share }: DeadNodes,
  full: readonly string[],
  hasSuspect: boolean,
): Promise<ClaimCandidate[]> {
  if (dead.length === 0) return [];
  const { rows } = await shards.query<ClaimCandidate>(
    'looking for sessions of dead workers',
    (within) => sql`
    select organization_id as "organizationId", session_id as "sessionId", epoch, crashes, node_id as "nodeId"
    from sessions
    where node_id = any(${[...dead]}::uuid[]) and organization_id <> all(${[...full]}::uuid[])
      and (node_id <> all(${[...recentlyDead]}::uuid[]) or ${isIn(share)})
      ${hasSuspect ? sql`and ${notSuspicious}` : empty} ${within()}
    limit ${PAGE_SIZE}`,
  );
  return rows;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
