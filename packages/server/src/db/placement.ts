// Which shard each organization is on, and which server each shard is on. Only a sharded database has more than one of either.
import sql from 'sql-template-tag';
import type { Db } from './db.ts';

/** The number of the shard in Citus; 0 on a database that is not sharded. */
export type Shard = number;

/** A server of Citus, and the organizations on it when they were last listed. */
export interface Server {
  id: number;
  organizationIds: readonly string[];
}

export interface Placement {
  /** Rejects if the query does. Queries until it succeeds once. */
  isSharded(): Promise<boolean>;
  /** Undefined until `find` has found it. */
  of(organizationId: string): Shard | undefined;
  /** Looks up the organizations that are not known yet, in one query. Rejects if the query does. */
  find(organizationIds: Iterable<string>): Promise<void>;
  /** To be called with the error of a statement. If the placement was outdated, organizations are looked up again. */
  failed(error: unknown): void;
  /** Lists all organizations again. Rejects if a query does; the previous list then remains. */
  list(): Promise<void>;
  /** As of the last `list`. */
  servers(): readonly Server[];
}

interface Row {
  organizationId: string;
  shard: Shard;
  server: number;
}

// About ten megabytes.
const MAX_REMEMBERED = 100_000;
const FEATURE_NOT_SUPPORTED = '0A000';

export function createPlacement({ query }: Pick<Db, 'query'>): Placement {
  /** Bounded, because a request may name any id. */
  const shardOf = new Map<string, Shard>();
  let servers: readonly Server[] = [];
  /** A database is sharded while every node is stopped, so one check is enough. */
  let asking: Promise<boolean> | undefined;
  let isOne = false;

  async function isSharded(): Promise<boolean> {
    asking ??= detectSharding();
    // After a failure the next caller checks again.
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
