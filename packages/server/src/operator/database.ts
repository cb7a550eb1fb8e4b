// Commands that change the database of an installation. The operator runs them on the host while no node is running.
import sql from 'sql-template-tag';
import type { Config } from '../config/config.ts';
import type { Tx } from '../db/db.ts';
import { distribute, hasCitus } from '../db/schema/distribute.ts';
import { OperatorError, withInstallation } from './operator.ts';
import { explainStart } from './start-error.ts';

/**
 * Shards the database by organization with Citus. Returns the tables that it distributed; none if that was done before. Distributes all
 * tables or none. Throws `OperatorError` or `StartError`.
 */
export async function distributeOnHost(config: Config): Promise<string[]> {
  if (config.databaseUrl === undefined) {
    throw new OperatorError(
      "The embedded database can't be sharded. Set DATABASE_URL to the coordinator of a Citus cluster.",
    );
  }
  try {
    return await withInstallation(config, (db) =>
      db.transaction(async (tx) => {
        if (!(await hasCitus(tx.query))) {
          throw new OperatorError(
            'The database does not have the Citus extension. Run `create extension citus` in it, and add the Citus workers.',
          );
        }
        await requireStopped(tx);
        return distribute(tx.query);
      }),
    );
  } catch (error) {
    throw explainStart(error, config);
  }
}

/** A node checks only at its start whether the database is sharded, and would continue as if it were not. */
export async function requireStopped(tx: Tx): Promise<void> {
  // Nodes that run turns or send webhooks have a lease. Others have connections, unless a pooler renames these.
  const found = await tx.query(sql`
    select 1 from nodes where lease_expires_at > now()
    union all
    select 1 from pg_stat_activity
    where datname = current_database() and application_name = 'signalbox' and pid <> pg_backend_pid()`);
  if (found.length > 0) {
    throw new OperatorError(
      'Nodes are running on this database, or were running within the last 30 seconds. Stop all of them and run the command again.',
    );
  }
}
