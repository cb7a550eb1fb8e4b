// The statements of lists of sessions. The cost of a page depends on its length, not on the number of sessions.
//
// Two indexes cover agent, environment and status, with sessions in the order of the list. If a filter leaves out leading
// columns, the page is merged: the newest of each matching environment and status, then the newest of these. There are few
// environments, and one index look-up finds each, including deleted ones.
//
// A filter by draft uses sessions_drafts, one by error sessions_with_error, one by origin session_forks, one by end user
// session_end_users. A filter by metadata uses session_metadata: it reads the sessions that have the first pair, newest first, until the
// page is full, and compares each with the other filters. Ids sort by time, so a period is a range of ids.
import { type Input, type Session, sessionStatuses } from '@signalbox/contract';
import sql, { empty, join, type Sql } from 'sql-template-tag';
import { firstUuidOf, idRange, uuidOf } from '../lib/ids.ts';
import { pairOf } from './metadata.ts';
import { sessionColumns } from './state/session.ts';

export type SessionFilters = Input<'countSessions'> & {
  /** Instead of `status`. */
  statuses?: readonly Session['status'][];
  sessionIds?: readonly string[];
};

export interface SessionQuery {
  /** The sessions with all their columns, without a search for words. */
  list(limit: number): Sql;
  /** The ids of sessions to compare with `filters`, in the order of the list. */
  candidates(limit: number): Sql;
  /** `and …` for the cursor and the period, on the column with the id. */
  within(id: Sql): Sql;
  /** `and …` on `s`, a row of sessions: all other filters, except that for words. */
  filters: Sql[];
  /** Those of them that a search for words does not include (search/words.ts). */
  notInWords: Sql[];
  /** `order by …` the column with the id. */
  order(id: Sql): Sql;
}

// A session's id is assigned just before or after its time of creation, on some node.
const CLOCKS_DIFFER_MS = 60_000;

interface Options {
  organizationId: string;
  order?: 'asc' | 'desc' | undefined;
  /** The last session of the page before. */
  after?: string | undefined;
}

export function sessionQuery(input: SessionFilters, { organizationId, order = 'desc', after }: Options): SessionQuery {
  const { status, agentId, environment, parentSessionId, forkedFromSessionId, endUserId, hasError, sessionIds, draft } =
    input;
  const statuses = input.statuses ?? (status && [status]);
  const pairs = Object.entries(input.metadata ?? {});
  const isDesc = order === 'desc';
  const direction = isDesc ? sql`desc` : sql`asc`;
  const ofAgent = agentId === undefined ? empty : sql`and s.agent_id = ${uuidOf('agt', agentId)}`;
  const range = rangeOf(input);

  /** The cursor and the period, on the column with the id. */
  const within = (id: Sql): Sql =>
    join(
      [
        empty,
        ...(after === undefined ? [] : [isDesc ? sql`and ${id} < ${after}` : sql`and ${id} > ${after}`]),
        ...(range.from === undefined ? [] : [sql`and ${id} >= ${range.from}`]),
        ...(range.to === undefined ? [] : [sql`and ${id} <= ${range.to}`]),
      ],
      ' ',
    );
  const ofDraft = draft === undefined ? empty : draft ? sql`and s.pinned_version < 0` : notDraft;
  const ofEnvironment = environment === undefined ? empty : sql`and s.environment = ${environment}`;
  const ofEndUser = endUserId === undefined ? empty : sql`and s.end_user_id = ${endUserId}`;
  const inWords = [ofAgent, ofEnvironment, ofEndUser];
  const others: Sql[] = [
    ofDraft,
    ...inWords,
    statuses === undefined ? empty : sql`and s.status = any(${[...statuses]}::text[])`,
    parentSessionId === undefined ? empty : sql`and s.parent_session_id = ${uuidOf('ses', parentSessionId)}`,
    forkedFromSessionId === undefined
      ? empty
      : sql`and s.forked_from_session_id = ${uuidOf('ses', forkedFromSessionId)}`,
    hasError === true ? sql`and s.error is not null` : empty,
    input.since === undefined ? empty : sql`and s.created_at >= ${new Date(input.since)}`,
    input.until === undefined ? empty : sql`and s.created_at < ${new Date(input.until)}`,
    sessionIds === undefined
      ? empty
      : sql`and s.session_id = any(${sessionIds.map((id) => uuidOf('ses', id))}::uuid[])`,
    // Compared again, because two pairs may have the same hash.
    ...pairs.map(([key, value]) => sql`and s.metadata->>${key} = ${value}`),
  ].filter((condition) => condition !== empty);
  const isFiltered = statuses !== undefined || agentId !== undefined || environment !== undefined;

  /** One of the indexes: a table under an alias, its column with the id, and what its rows have to match. */
  function source(): { table: Sql; id: Sql; where: Sql } | undefined {
    if (sessionIds !== undefined) return undefined;
    if (pairs.length > 0) {
      const [first, ...more] = pairs.map(([key, value]) => pairOf(key, value));
      const haveMore = more.map(
        (pair) => sql`
          and exists (
            select 1 from session_metadata o
            where o.organization_id = ${organizationId} and o.pair = ${pair} and o.session_id = m.session_id)`,
      );
      const where = sql`m.organization_id = ${organizationId} and m.pair = ${first} ${join([empty, ...haveMore], ' ')}`;
      return { table: sql`session_metadata m`, id: sql`m.session_id`, where };
    }
    if (forkedFromSessionId !== undefined) {
      const where = sql`f.organization_id = ${organizationId} and f.origin_session_id = ${uuidOf('ses', forkedFromSessionId)}`;
      return { table: sql`session_forks f`, id: sql`f.session_id`, where };
    }
    if (endUserId !== undefined) {
      const where = sql`u.organization_id = ${organizationId} and u.end_user_id = ${endUserId}`;
      return { table: sql`session_end_users u`, id: sql`u.session_id`, where };
    }
    return undefined;
  }

  const isMerged =
    isFiltered && draft !== true && parentSessionId === undefined && hasError !== true && sessionIds === undefined;
  const merged = (limit: number): Sql => {
    const of = { organizationId, ofAgent, environment, statuses: statuses ?? sessionStatuses };
    return newestOfEach(of, { within: sql`${within(sql`s.session_id`)} ${ofDraft}`, direction, limit });
  };

  return {
    within,
    filters: others,
    notInWords: others.filter((condition) => !inWords.includes(condition)),
    order: (id) => sql`order by ${id} ${direction}`,

    list(limit) {
      const index = source();
      if (index) {
        return sql`
          select ${sessionColumns} from ${index.table}
          join sessions s on s.organization_id = ${organizationId} and s.session_id = ${index.id}
          where ${index.where} ${within(index.id)} ${join([empty, ...others], ' ')}
          order by ${index.id} ${direction} limit ${limit}`;
      }
      // `limit 1` makes the planner look up each id by the key; a join on any number of ids could scan the whole table.
      if (isMerged) {
        return sql`
          select ${sessionColumns} from (${merged(limit)}) found
          cross join lateral (
            select * from sessions s
            where s.organization_id = ${organizationId} and s.session_id = found.session_id limit 1) s
          where true ${join([empty, ...others], ' ')}
          order by s.session_id ${direction}`;
      }
      return sql`
        select ${sessionColumns} from sessions s
        where s.organization_id = ${organizationId} ${within(sql`s.session_id`)} ${join([empty, ...others], ' ')}
        order by s.session_id ${direction} limit ${limit}`;
    },

    candidates(limit) {
      const index = source();
      if (index) {
        return sql`
          select ${index.id} from ${index.table} where ${index.where} ${within(index.id)}
          order by ${index.id} ${direction} limit ${limit}`;
      }
      if (isMerged) return merged(limit);
      // Conditions that an index has; the others are compared later, so that the limit bounds what is read.
      const indexed = [
        draft === true ? ofDraft : empty,
        hasError === true ? sql`and s.error is not null` : empty,
        parentSessionId === undefined ? empty : sql`and s.parent_session_id = ${uuidOf('ses', parentSessionId)}`,
        sessionIds === undefined
          ? empty
          : sql`and s.session_id = any(${sessionIds.map((id) => uuidOf('ses', id))}::uuid[])`,
      ].filter((condition) => condition !== empty);
      return sql`
        select s.session_id from sessions s
        where s.organization_id = ${organizationId} ${within(sql`s.session_id`)} ${join([empty, ...indexed], ' ')}
        order by s.session_id ${direction} limit ${limit}`;
    },
  };
}

/** There are few drafts to skip. Those alone have an index. */
const notDraft = sql`and coalesce(s.pinned_version, 0) >= 0`;

interface Merged {
  organizationId: string;
  ofAgent: Sql;
  /** Undefined: every environment that has sessions. */
  environment: string | undefined;
  statuses: readonly Session['status'][];
}

/** The ids of the first sessions of each environment and status, merged. */
function newestOfEach(
  { organizationId, ofAgent, environment, statuses }: Merged,
  { within, direction, limit }: { within: Sql; direction: Sql; limit: number },
): Sql {
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
  return sql`
    with recursive places(environment) as (${places})
    select x.session_id from places p
    cross join unnest(${[...statuses]}::text[]) k(status)
    cross join lateral (
      select s.session_id from sessions s
      where s.organization_id = ${organizationId} ${ofAgent} and s.environment = p.environment and s.status = k.status
        ${within}
      order by s.session_id ${direction} limit ${limit}) x
    where p.environment is not null
    order by x.session_id ${direction} limit ${limit}`;
}

/** The ids that a period, and the beginning of an id, leave. */
function rangeOf({ since, until, q }: SessionFilters): { from?: string | undefined; to?: string | undefined } {
  const ofIds = q === undefined ? undefined : idRange('ses', q.trim());
  const from = since === undefined ? undefined : firstUuidOf(new Date(Date.parse(since) - CLOCKS_DIFFER_MS));
  const to = until === undefined ? undefined : firstUuidOf(new Date(Date.parse(until) + CLOCKS_DIFFER_MS));
  const max = [from, ofIds?.from]
    .filter((id) => id !== undefined)
    .toSorted()
    .at(-1);
  const min = [to, ofIds?.to].filter((id) => id !== undefined).toSorted()[0];
  return { from: max, to: min };
}
