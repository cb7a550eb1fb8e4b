// Claiming sessions, and reading their operations.
//
// One statement claims the sessions of many organizations (as many as db/shards.ts groups together). Their transcripts are then
// loaded a few MiB at a time (session-rows/load-transcripts.ts), so a node that takes over the sessions of a dead one never loads
// all of them at once.
import sql from 'sql-template-tag';
import { shortOrText } from '../../lib/json/json-text.ts';
import type { Platform } from '../../platform.ts';
import type { Compaction } from '../../session-rows/compactions.ts';
import { type Operation, operationColumnsWith } from '../../session-rows/operations.ts';
import { type SessionRow, sessionColumns } from '../../session-rows/session.ts';
import type { TranscriptEntry } from '../../session-rows/transcript.ts';
import type { ClaimCandidate } from './candidates.ts';
import { countCrash } from './crashes.ts';

/** A session as it was claimed. */
export interface ClaimedSession {
  row: SessionRow;
  /** Its node died. */
  isTakenOver: boolean;
  transcript: TranscriptEntry[];
  compaction: Compaction | null;
  /** Operations of the current turn. */
  operations: Operation[];
}

/**
 * Raises the epoch and puts the node's id on the rows that still match their candidates. All must be of one shard: at most as many
 * organizations as a statement may name.
 */
export function claim(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  nodeId: string,
  candidates: readonly ClaimCandidate[],
  dead: readonly string[],
): Promise<SessionRow[]> {
  const organizations = candidates.map(({ organizationId }) => organizationId);
  const scope = [...new Set(organizations)];
  return db.query<SessionRow>(sql`
    update sessions s set epoch = s.epoch + 1, node_id = ${nodeId}, queue = null, ${countCrash(dead)}
    from unnest(${organizations}::uuid[], ${candidates.map(({ sessionId }) => sessionId)}::uuid[],
      ${candidates.map(({ epoch }) => epoch)}::int[]) as c(org, sid, epoch)
    cross join lateral (
      select x.organization_id, x.session_id from sessions x
      where x.organization_id = any(${scope}::uuid[]) and x.organization_id = c.org and x.session_id = c.sid
        and x.epoch = c.epoch and x.ended_at is null
        and (x.node_id is null and x.runnable_at <= ${clock.now()} or x.node_id = any(${[...dead, nodeId]}::uuid[]))
      for no key update of x skip locked) free
    where s.organization_id = any(${scope}::uuid[]) and s.organization_id = free.organization_id
      and s.session_id = free.session_id
    returning ${sessionColumns}`);
}

/** Operations of their current turns, by session: results of tool calls only of the last step. All of one shard. */
export async function readOperationsOf(
  db: Platform['db'],
  rows: readonly SessionRow[],
): Promise<Map<string, Operation[]>> {
  const organizations = rows.map(({ organizationId }) => organizationId);
  const operations = await db.query<Operation & { sessionId: string }>(sql`
    select h.sid as "sessionId", ${operationColumnsWith(sql`case when o.kind <> 'tool' or o.step = max(o.step) over (partition by h.sid) then o.output end`)}
    from unnest(${organizations}::uuid[], ${rows.map(({ sessionId }) => sessionId)}::uuid[],
      ${rows.map(({ turn }) => turn)}::int[]) as h(org, sid, in_turn)
    cross join lateral (
      select x.* from operations x
      where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
        and x.session_id = h.sid and x.turn = h.in_turn
      offset 0) o
    order by h.sid, o.step, o.index`);
  return Map.groupBy(
    operations.map((one) => (one.kind === 'tool' ? { ...one, output: shortOrText(one.output) } : one)),
    ({ sessionId }) => sessionId,
  );
}
