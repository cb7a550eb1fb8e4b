// Where the organizations are: on which shard, and which shards share a server. On a database that is not sharded there is nothing
// to know.
import sql from 'sql-template-tag';
import type { Db } from './db.ts';

/** The number that Citus gives it; 0 on a database that is not sharded. */
export type Shard = number;

/** A server of Citus, and every organization on it that was there when they were listed. */
export interface Server {
  id: number;
  organizationIds: readonly string[];
}

export interface Placement {
  /** Rejects as the query does; asks only until it knows. */
  isSharded(): Promise<boolean>;
  /** Undefined until `find` has found it. */
  of(organizationId: string): Shard | undefined;
  /** One query for those that are not known yet. Rejects as the query does. */
  find(organizationIds: Iterable<string>): Promise<void>;
  /** Hears of a failed statement: if it says that the organizations are placed otherwise, they are looked up anew. */
  failed(error: unknown): void;
  /** Lists all organizations anew. Rejects as the queries do; what was listed before stays. */
  list(): Promise<void>;
  /** As they were listed last. */
  servers(): readonly Server[];
}

interface Row {
  organizationId: string;
  shard: Shard;
  server: number;
}

// Some ten megabytes.
const MAX_REMEMBERED = 100_000;
const FEATURE_NOT_SUPPORTED = '0A000';

export function createPlacement({ query }: Pick<Db, 'query'>): Placement {
  /** Of those that somebody named: a request may name any id. */
  const shardOf = new Map<string, Shard>();
  let servers: readonly Server[] = [];
  /** Sharding a database needs every node stopped, so it is asked for once. */
  let asking: Promise<boolean> | undefined;
  let isOne = false;

  async function isSharded(): Promise<boolean> {
    asking ??= detectSharding();
    // The next caller asks again.
    isOne = !(await asking.catch((error: unknown) => {
      asking = undefined;
      throw error;
    }));
    return !isOne;
  }

  async function detectSharding(): Promise<boolean> {
    const [citus] = await query<{ isThere: boolean }>(
      sql`select to_regclass('pg_dist_partition') is not null as "isThere"`,
    );
    if (!citus?.isThere) return false;
    const rows = await query(sql`select 1 from pg_dist_partition where logicalrelid = 'sessions'::regclass`);
    return rows.length > 0;
  }

  function of(organizationId: string): Shard | undefined {
    return isOne ? 0 : shardOf.get(organizationId);
  }

  function place(organizationIds: readonly string[]): Promise<Row[]> {
    return query<Row>(sql`
      select x.o as "organizationId", x.shard, coalesce(p.groupid, 0) as server
      from (
        select o, get_shard_id_for_distribution_column('sessions', o) as shard
        from unnest(${organizationIds}::uuid[]) as o) x
      left join pg_dist_placement p on p.shardid = x.shard`);
  }

  return {
    isSharded,
    of,

    async find(organizationIds) {
      if (isOne || !(await isSharded())) return;
      const missing = [...new Set(organizationIds)].filter((id) => of(id) === undefined);
      if (missing.length === 0) return;
      const rows = await place(missing);
      if (shardOf.size + rows.length > MAX_REMEMBERED) shardOf.clear();
      for (const { organizationId, shard } of rows) shardOf.set(organizationId, shard);
    },

    failed(error) {
      if ((error as { code?: unknown } | undefined)?.code === FEATURE_NOT_SUPPORTED) shardOf.clear();
    },

    async list() {
      const all = await query<{ organizationId: string }>(sql`
        select organization_id as "organizationId" from organizations`);
      const rows = await place(all.map(({ organizationId }) => organizationId));
      servers = [...Map.groupBy(rows, ({ server }) => server)].map(([id, ofServer]) => ({
        id,
        organizationIds: ofServer.map(({ organizationId }) => organizationId),
      }));
    },

    servers: () => servers,
  };
}
