// The statements of lists of sessions. The cost of a page depends on its length, not on the number of sessions.
//
// Two indexes cover agent, environment and status, with sessions in the order of the list. If a filter leaves out leading
// columns, the page is merged: the newest of each matching environment and status, then the newest of these. There are few
// environments, and one index look-up finds each, including deleted ones.
//
// A filter by draft uses sessions_drafts, one by error sessions_with_error, one by parent sessions_by_parent, one by origin
// session_forks, one by end user session_end_users, and one by metadata session_metadata. With filters of several indexes, the sessions
// that the first finds are compared with the others, until the page is full. If many have to be compared, hardly any match all: then
// the ids that all indexes have are found in the indexes alone. Ids sort by time, so a period is a range of ids.
import { type Input, type Session, sessionStatuses } from '@signalbox/contract';
import sql, { empty, join, type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import { firstUuidOf, idRange, uuidOf } from '../../lib/ids.ts';
import { sessionColumns } from '../../session-rows/session.ts';
import { pairOf } from './metadata.ts';

export type SessionFilters = Input<'countSessions'> & {
  /** Instead of `status`. */
  statuses?: readonly Session['status'][];
  sessionIds?: readonly string[];
};

export interface SessionQuery {
  /** The sessions with all their columns, without a search for words. */
  list(limit: number): Sql;
  /** Then `list` reads everything that they have, so some `candidates` are checked first; it needs `withValuesPlanned`. */
  hasSeveralIndexes: boolean;
  /** The ids of sessions to compare with `filters`, in the order of the list. */
  candidates(limit: number): Sql;
  /** `and …` for the cursor and the period, on the column with the id. */
  within(id: Sql): Sql;
  /** `and …` on `s`, a row of sessions: all other filters, except that for words. */
  filters: Sql[];
  /** The filters that a search for words does not include (search/words.ts). */
  notInWords: Sql[];
  /** `order by …` the column with the id. */
  order(id: Sql): Sql;
}

/** The sessions that an index finds for one of the filters. */
interface Index {
  /** All ids, in any order. */
  ids: Sql;
  /** The first ids, in the order of the list. */
  first(limit: number): Sql;
  /** As many ids in the order of the list as it takes to find `limit` sessions that match all other filters. */
  page(limit: number): Sql;
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
  const ofStatus = statuses === undefined ? empty : sql`and s.status = any(${[...statuses]}::text[])`;
  const ofIds =
    sessionIds === undefined
      ? empty
      : sql`and s.session_id = any(${sessionIds.map((id) => uuidOf('ses', id))}::uuid[])`;
  const since = input.since === undefined ? empty : sql`and s.created_at >= ${new Date(input.since)}`;
  const until = input.until === undefined ? empty : sql`and s.created_at < ${new Date(input.until)}`;
  const inWords = [ofAgent, ofEnvironment, ofEndUser];
  const others: Sql[] = [
    ofDraft,
    ...inWords,
    ofStatus,
    parentSessionId === undefined ? empty : sql`and s.parent_session_id = ${uuidOf('ses', parentSessionId)}`,
    forkedFromSessionId === undefined
      ? empty
      : sql`and s.forked_from_session_id = ${uuidOf('ses', forkedFromSessionId)}`,
    hasError === true ? sql`and s.error is not null` : empty,
    since,
    until,
    ofIds,
    // Compared again, because two pairs may have the same hash.
    ...pairs.map(([key, value]) => sql`and s.metadata->>${key} = ${value}`),
  ].filter((condition) => condition !== empty);
  const inOrder = (id: Sql): Sql => sql`order by ${id} ${direction}`;

  /** `where` is what the index finds in a table with the alias i. */
  const indexOf = (table: Sql, where: Sql): Index => {
    const ids = sql`
      select i.session_id from ${table} i
      where i.organization_id = ${organizationId} and ${where} ${within(sql`i.session_id`)}`;
    const page = () => sql`${ids} ${inOrder(sql`i.session_id`)}`;
    return { ids, first: (limit) => sql`${page()} limit ${limit}`, page };
  };

  function* indexes(): Generator<Index> {
    if (sessionIds !== undefined) return;
    for (const [key, value] of pairs) yield indexOf(sql`session_metadata`, sql`i.pair = ${pairOf(key, value)}`);
    if (forkedFromSessionId !== undefined) {
      yield indexOf(sql`session_forks`, sql`i.origin_session_id = ${uuidOf('ses', forkedFromSessionId)}`);
    }
    if (endUserId !== undefined) yield indexOf(sql`session_end_users`, sql`i.end_user_id = ${endUserId}`);
    if (parentSessionId !== undefined) {
      yield indexOf(sql`sessions`, sql`i.parent_session_id = ${uuidOf('ses', parentSessionId)}`);
    }
    if (draft === true) yield indexOf(sql`sessions`, sql`i.pinned_version < 0`);
    if (hasError === true) yield indexOf(sql`sessions`, sql`i.error is not null`);
    if (statuses !== undefined || agentId !== undefined || environment !== undefined) {
      const of = { organizationId, ofAgent, environment, statuses: statuses ?? sessionStatuses };
      const rest = join([within(sql`s.session_id`), ofDraft, since, until], ' ');
      const first = (limit: number) => newestOfEach(of, { within: rest, direction, limit });
      yield {
        ids: sql`
          select s.session_id from sessions s
          where s.organization_id = ${organizationId} ${ofAgent} ${ofEnvironment} ${ofStatus} ${within(sql`s.session_id`)}`,
        first,
        page: first,
      };
    }
  }
  const [index, ...more] = indexes();

  return {
    within,
    filters: others,
    notInWords: others.filter((condition) => !inWords.includes(condition)),
    order: inOrder,
    hasSeveralIndexes: more.length > 0,

    list(limit) {
      if (!index) {
        return sql`
          select ${sessionColumns} from sessions s
          where s.organization_id = ${organizationId} ${within(sql`s.session_id`)} ${join([empty, ...others], ' ')}
          ${inOrder(sql`s.session_id`)} limit ${limit}`;
      }
      // Ids alone are joined, for which the indexes are enough. Rows are read only until the page is full.
      const joined = more.reduce(
        (found, { ids }) => sql`select session_id from (${found}) i join (${ids}) m using (session_id)`,
        index.ids,
      );
      const ids =
        more.length === 0
          ? index.page(limit)
          : sql`with found as materialized (${joined}) select session_id from found ${inOrder(sql`session_id`)}`;
      // `limit 1` makes the planner look up each id by the key; a join on any number of ids could scan the whole table.
      return sql`
        select ${sessionColumns} from (${ids}) c
        cross join lateral (
          select * from sessions s where s.organization_id = ${organizationId} and s.session_id = c.session_id limit 1) s
        where true ${join([empty, ...others], ' ')}
        ${inOrder(sql`c.session_id`)} limit ${limit}`;
    },

    candidates: (limit) =>
      index
        ? index.first(limit)
        : sql`
            select s.session_id from sessions s
            where s.organization_id = ${organizationId} ${within(sql`s.session_id`)}
              ${sessionIds === undefined ? empty : ofIds}
            ${inOrder(sql`s.session_id`)} limit ${limit}`,
  };
}

/** How many rows its values match decides how the statement joins indexes. A plan for any values could look up each row of a large one. */
export function withValuesPlanned<Row>(db: Db, statement: Sql): Promise<Row[]> {
  return db.transaction((tx) => {
    tx.write(sql`select set_config('plan_cache_mode', 'force_custom_plan', true)`);
    return tx.query<Row>(statement);
  });
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
