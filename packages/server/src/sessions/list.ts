// Lists of sessions. The cost of a page depends on its length, not on the number of sessions.
//
// Two indexes cover agent, environment and status, with sessions in the order of the list. If a filter leaves out leading
// columns, the page is merged: the newest of each matching environment and status, then the newest of these. There are few
// environments, and one index look-up finds each, including deleted ones.
//
// A filter by origin uses session_forks, one by end user session_end_users. A filter by metadata uses session_metadata: it reads the sessions that have the first pair, newest first, until the page is
// full, and compares each with the other filters.
import { type Input, type Result, type Session, sessionStatuses } from '@signalbox/contract';
import sql, { empty, join, type Sql } from 'sql-template-tag';
import type { Context } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { pairOf } from './metadata.ts';
import { type SessionRow, sessionColumns, viewSession } from './state/session.ts';

/** Newest first. */
export async function listSessions(ctx: Context, input: Input<'listSessions'>): Promise<Result<'listSessions'>> {
  const { organizationId } = ctx;
  const { status, agentId, environment, draft, parentSessionId, forkedFromSessionId, endUserId } = input;
  const request = pageRequest(`sessions:${organizationId}`, input);
  const pairs = Object.entries(input.metadata ?? {});
  const after = request.after === undefined ? empty : sql`and s.session_id < ${request.after}`;
  const afterFork = request.after === undefined ? empty : sql`and f.session_id < ${request.after}`;
  const afterEndUser = request.after === undefined ? empty : sql`and u.session_id < ${request.after}`;
  const ofAgent = agentId === undefined ? empty : sql`and s.agent_id = ${uuidOf('agt', agentId)}`;
  const limit = request.limit + 1;
  const ofDraft = draft === undefined ? empty : draft ? sql`and s.pinned_version < 0` : notDraft;
  const others = [
    ofDraft,
    sql`${ofAgent}`,
    status === undefined ? empty : sql`and s.status = ${status}`,
    environment === undefined ? empty : sql`and s.environment = ${environment}`,
    parentSessionId === undefined ? empty : sql`and s.parent_session_id = ${uuidOf('ses', parentSessionId)}`,
    forkedFromSessionId === undefined
      ? empty
      : sql`and s.forked_from_session_id = ${uuidOf('ses', forkedFromSessionId)}`,
    endUserId === undefined ? empty : sql`and s.end_user_id = ${endUserId}`,
  ];
  const isFiltered = draft !== true && (status !== undefined || agentId !== undefined || environment !== undefined);
  const statement =
    pairs.length > 0
      ? listByMetadata(organizationId, pairs, join([after, ...others], ' '), limit)
      : forkedFromSessionId !== undefined
        ? listForks(organizationId, uuidOf('ses', forkedFromSessionId), join([afterFork, ...others], ' '), limit)
        : endUserId !== undefined
          ? listOfEndUser(organizationId, endUserId, join([afterEndUser, ...others], ' '), limit)
          : isFiltered && parentSessionId === undefined
            ? listByIndex({
                organizationId,
                ofAgent,
                environment,
                statuses: status ? [status] : sessionStatuses,
                after: sql`${after} ${ofDraft}`,
                limit,
              })
            : sql`
            select ${sessionColumns} from sessions s
            where s.organization_id = ${organizationId} ${join([after, ...others], ' ')}
            order by s.session_id desc limit ${limit}`;
  const rows = await ctx.db.query<SessionRow>(statement);
  return pageOf(request, rows, (row) => row.sessionId, viewSession);
}

/** There are few drafts to skip. Those alone have an index. */
const notDraft = sql`and coalesce(s.pinned_version, 0) >= 0`;

interface ListFilter {
  organizationId: string;
  ofAgent: Sql;
  /** Undefined: every environment that has sessions. */
  environment: string | undefined;
  statuses: readonly Session['status'][];
  after: Sql;
  limit: number;
}

function listByIndex({ organizationId, ofAgent, environment, statuses, after, limit }: ListFilter): Sql {
  const places =
    environment === undefined
      ? sql`
          (select s.environment from sessions s where s.organization_id = ${organizationId} ${ofAgent}
          order by s.environment limit 1)
          union all
          select (
            select s.environment from sessions s
            where s.organization_id = ${organizationId} ${ofAgent} and s.environment > p.environment
            order by s.environment limit 1)
          from places p where p.environment is not null`
      : sql`select ${environment}::text`;
  // `limit 1` makes the planner look up each id by the key; a join on any number of ids could scan the whole table.
  return sql`
    with recursive places(environment) as (${places})
    select ${sessionColumns} from (
      select x.session_id from places p
      cross join unnest(${[...statuses]}::text[]) k(status)
      cross join lateral (
        select s.session_id from sessions s
        where s.organization_id = ${organizationId} ${ofAgent} and s.environment = p.environment and s.status = k.status
          ${after}
        order by s.session_id desc limit ${limit}) x
      where p.environment is not null
      order by x.session_id desc limit ${limit}) found
    cross join lateral (
      select * from sessions s
      where s.organization_id = ${organizationId} and s.session_id = found.session_id limit 1) s
    order by s.session_id desc`;
}

function listForks(organizationId: string, originId: string, filters: Sql, limit: number): Sql {
  return sql`
    select ${sessionColumns} from session_forks f
    join sessions s on s.organization_id = f.organization_id and s.session_id = f.session_id
    where f.organization_id = ${organizationId} and f.origin_session_id = ${originId} ${filters}
    order by f.session_id desc limit ${limit}`;
}

function listOfEndUser(organizationId: string, endUserId: string, filters: Sql, limit: number): Sql {
  return sql`
    select ${sessionColumns} from session_end_users u
    join sessions s on s.organization_id = u.organization_id and s.session_id = u.session_id
    where u.organization_id = ${organizationId} and u.end_user_id = ${endUserId} ${filters}
    order by u.session_id desc limit ${limit}`;
}

function listByMetadata(organizationId: string, pairs: [string, string][], filters: Sql, limit: number): Sql {
  const [first, ...more] = pairs.map(([key, value]) => pairOf(key, value));
  const haveMore = more.map(
    (pair) => sql`
      and exists (
        select 1 from session_metadata o
        where o.organization_id = ${organizationId} and o.pair = ${pair} and o.session_id = m.session_id)`,
  );
  // Compared again, because two pairs may have the same hash.
  const compared = pairs.map(([key, value]) => sql`and s.metadata->>${key} = ${value}`);
  return sql`
    select ${sessionColumns} from session_metadata m
    join sessions s on s.organization_id = m.organization_id and s.session_id = m.session_id
    where m.organization_id = ${organizationId} and m.pair = ${first} ${join([...haveMore, ...compared, filters], ' ')}
    order by m.session_id desc limit ${limit}`;
}
