// Which organizations one statement may name together.
//
// On one PostgreSQL: any. On one that Citus shards by organization: those of one shard. A statement that names organizations of
// two is refused (0A000), and one that the planner can send to both would stand still with either. So work for many
// organizations is grouped by shard, and a shard that is down fails its own group only.
import sql from 'sql-template-tag';
import type { Db } from './db.ts';

/** The number that Citus gives it; 0 on a database that is not sharded. */
export type Shard = number;

/** Work that failed: the items that it was for. */
export interface FailedGroup<T> {
  items: readonly T[];
  error: unknown;
}

export interface Shards {
  /**
   * Calls `act` with items of at most 32 organizations of one shard at a time; shards side by side, groups of one shard one
   * after the other. Never rejects: a group that fails is in the result, and stops no other shard.
   */
  each<T>(
    items: readonly T[],
    organizationOf: (item: T) => string,
    act: (group: readonly T[]) => Promise<void>,
  ): Promise<FailedGroup<T>[]>;
  /** Undefined until `find` has found it. */
  of(organizationId: string): Shard | undefined;
  /** One query for those that are not known yet. Rejects as the query does. */
  find(organizationIds: Iterable<string>): Promise<void>;
  /** Hears of a failed statement: where it says that the organizations are placed otherwise, they are looked up anew. */
  failed(error: unknown): void;
}

// Past this the planner no longer looks each of them up by the index.
const GROUP_ORGANIZATIONS = 32;
// Some ten megabytes.
const MAX_REMEMBERED = 100_000;
const FEATURE_NOT_SUPPORTED = '0A000';

export function createShards({ query }: Pick<Db, 'query'>): Shards {
  const shardOf = new Map<string, Shard>();
  /** Sharding a database needs every node stopped, so it is asked for once. */
  let isSharded: Promise<boolean> | undefined;
  let isOne = false;

  function of(organizationId: string): Shard | undefined {
    return isOne ? 0 : shardOf.get(organizationId);
  }

  async function find(organizationIds: Iterable<string>): Promise<void> {
    if (isOne) return;
    isSharded ??= askWhetherSharded();
    // The next caller asks again.
    isOne = !(await isSharded.catch((error: unknown) => {
      isSharded = undefined;
      throw error;
    }));
    const missing = [...new Set(organizationIds)].filter((id) => of(id) === undefined);
    if (missing.length === 0) return;
    const rows = await query<{ organizationId: string; shard: Shard }>(sql`
      select o as "organizationId", get_shard_id_for_distribution_column('sessions', o) as shard
      from unnest(${missing}::uuid[]) as o`);
    if (shardOf.size + rows.length > MAX_REMEMBERED) shardOf.clear();
    for (const { organizationId, shard } of rows) shardOf.set(organizationId, shard);
  }

  async function askWhetherSharded(): Promise<boolean> {
    const [citus] = await query<{ isThere: boolean }>(
      sql`select to_regclass('pg_dist_partition') is not null as "isThere"`,
    );
    if (!citus?.isThere) return false;
    const rows = await query(sql`select 1 from pg_dist_partition where logicalrelid = 'sessions'::regclass`);
    return rows.length > 0;
  }

  function failed(error: unknown): void {
    if ((error as { code?: unknown } | undefined)?.code === FEATURE_NOT_SUPPORTED) shardOf.clear();
  }

  return {
    of,
    find,
    failed,
    async each(items, organizationOf, act) {
      const failures: FailedGroup<(typeof items)[number]>[] = [];
      const unplaced = await find(items.map(organizationOf)).catch((error: unknown) => ({ error }));
      const lanes = Map.groupBy(items, (item) => of(organizationOf(item)));
      await Promise.all(
        [...lanes].map(async ([shard, lane]) => {
          if (shard === undefined) {
            failures.push({ items: lane, error: unplaced?.error ?? new Error('An organization without a shard') });
            return;
          }
          for (const group of groupOrganizations(lane, organizationOf)) {
            try {
              await act(group);
            } catch (error) {
              failed(error);
              failures.push({ items: group, error });
            }
          }
        }),
      );
      return failures;
    },
  };
}

/** In groups of as many organizations as one statement may name; those of an organization stay together, in their order. */
export function groupOrganizations<T>(items: readonly T[], organizationOf: (item: T) => string): T[][] {
  const groups: T[][] = [];
  let count = 0;
  for (const ofOne of Map.groupBy(items, organizationOf).values()) {
    if (count % GROUP_ORGANIZATIONS === 0) groups.push([]);
    groups.at(-1)!.push(...ofOne);
    count += 1;
  }
  return groups;
}
