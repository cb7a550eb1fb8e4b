// Claiming sessions, and loading what their runners need.
//
// One statement claims the sessions of many organizations (as many as db/shards.ts groups together). Their transcripts are then
// loaded a few MiB at a time, so a node that takes over the sessions of a dead one never loads all of them at once.
import sql from 'sql-template-tag';
import type { Platform } from '../../platform.ts';
import { isOfSource, sourcesOfEach } from '../../sessions/state/inherited.ts';
import { type Operation, operationColumns } from '../../sessions/state/operations.ts';
import { type SessionRow, sessionColumns } from '../../sessions/state/session.ts';
import type { TranscriptEntry } from '../../sessions/state/transcript.ts';
import { knowSize } from '../turn/transcript-size.ts';
import type { ClaimCandidate } from './candidates.ts';
import { countCrash } from './crashes.ts';

export interface Loaded {
  row: SessionRow;
  transcript: TranscriptEntry[];
  /** Size of the transcript as JSON. */
  bytes: number;
}

// Sizes as stored, mostly compressed. A session with a longer transcript is loaded by itself.
const LOADED_AT_ONCE_BYTES = 4 * 1024 * 1024;

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

/** Loads the transcripts of the first of these: at least one, and as many more as may be loaded at once. All of one shard. */
export async function loadTranscripts(db: Platform['db'], rows: readonly SessionRow[]): Promise<Loaded[]> {
  const organizations = rows.map(({ organizationId }) => organizationId);
  const ids = rows.map(({ sessionId }) => sessionId);
  const scope = [...new Set(organizations)];
  type Entry = TranscriptEntry & { n: number; bytes: number };
  const entries = await db.query<Entry | { n: number; turn: null }>(sql`
    with loaded as (select * from unnest(${organizations}::uuid[], ${ids}::uuid[]) with ordinality as h(org, sid, n))
    select n::integer, turn, position, message_id as "messageId", role, content, provider_data as "providerData",
      created_at as "createdAt", octet_length(content::text) + coalesce(octet_length(provider_data::text), 0) as bytes
    from (
      select s.n, m.*,
        -- What is stored before this session's own: reading its size does not read the value.
        sum(coalesce(pg_column_size(m.content), 0) + coalesce(pg_column_size(m.provider_data), 0))
          over (order by s.n range between unbounded preceding and 1 preceding) as before
      from (${sourcesOfEach(sql`loaded`, scope)}) s
      left join lateral (
        -- The offset keeps it a look-up for each session, rather than a join with all messages there are.
        select m.turn, m.position, m.message_id, m.role, m.content, m.provider_data, m.created_at from messages m
        where m.organization_id = any(${scope}::uuid[]) and m.organization_id = s.org and ${isOfSource}
        offset 0) m on true) found
    where before is null or before < ${LOADED_AT_ONCE_BYTES}
    order by n, turn, position`);
  const transcripts = Map.groupBy(entries, ({ n }) => n);
  return rows.slice(0, transcripts.size).map((row, index) => {
    const ofSession = transcripts.get(index + 1)!.filter((entry): entry is Entry => entry.turn !== null);
    const bytes = ofSession.reduce((sum, entry) => sum + entry.bytes, 0);
    const transcript = ofSession.map(({ n: _, bytes, ...entry }): TranscriptEntry => {
      knowSize(entry, bytes);
      return entry;
    });
    return { row, transcript, bytes };
  });
}

/** Operations of their current turns, by session. All of one shard. */
export async function readOperationsOf(
  db: Platform['db'],
  rows: readonly SessionRow[],
): Promise<Map<string, Operation[]>> {
  const organizations = rows.map(({ organizationId }) => organizationId);
  const operations = await db.query<Operation & { sessionId: string }>(sql`
    select h.sid as "sessionId", ${operationColumns}
    from unnest(${organizations}::uuid[], ${rows.map(({ sessionId }) => sessionId)}::uuid[],
      ${rows.map(({ turn }) => turn)}::int[]) as h(org, sid, in_turn)
    cross join lateral (
      select x.* from operations x
      where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
        and x.session_id = h.sid and x.turn = h.in_turn
      offset 0) o
    order by h.sid, o.step, o.index`);
  return Map.groupBy(operations, ({ sessionId }) => sessionId);
}
