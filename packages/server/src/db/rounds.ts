// Work that comes to every organization now and then, such as deleting what is too old. A node looks at a page of the organizations at a
// time, with one statement that finds those with something to do. What it costs in a minute does not grow with their number; a round
// through all of them takes longer.
import sql, { type Sql } from 'sql-template-tag';
import type { Shards, Within } from './shards.ts';

/** Some look-ups for each take about ten milliseconds. */
export const ROUND_PAGE = 1_000;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

export interface Page {
  /** Organizations with something to do. */
  organizationIds: string[];
  /** The next page is the first one of the next round. */
  isLast: boolean;
  /** False if a part of the database did not respond. */
  isComplete: boolean;
}

/** For `isDue`: whether there are such rows. With `exists`, PostgreSQL may read those of all organizations at once. */
export function areThere(fromWhere: Sql): Sql {
  return sql`coalesce((select true ${fromWhere} limit 1), false)`;
}

/**
 * Returns a function that returns the next page. `isDue` is a condition that may be true of an organization with nothing to do, and must not
 * be false of one with something. It is made of look-ups by indexes (`areThere`), each confined by `within`.
 */
export function createRound(
  { shards }: { shards: Shards },
  what: string,
  isDue: (organizationId: Sql, within: Within) => Sql,
): () => Promise<Page> {
  let after = BEFORE_ALL;
  return async () => {
    const { rows, isComplete } = await shards.query<{ organizationId: string; isDue: boolean }>(
      `looking for organizations: ${what}`,
      (within) => sql`
        select o.organization_id as "organizationId", (${isDue(sql`o.organization_id`, within)}) as "isDue" from organizations o
        where o.organization_id > ${after} ${within(sql`o.organization_id`)}
        order by o.organization_id limit ${ROUND_PAGE}`,
    );
    // Each server of a sharded database may return a whole page.
    const page = rows.toSorted((a, b) => (a.organizationId < b.organizationId ? -1 : 1)).slice(0, ROUND_PAGE);
    const isLast = page.length < ROUND_PAGE;
    after = isLast ? BEFORE_ALL : page.at(-1)!.organizationId;
    return { organizationIds: page.filter((one) => one.isDue).map((one) => one.organizationId), isLast, isComplete };
  };
}
