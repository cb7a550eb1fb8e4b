// What the operator does to the database of an installation, on the host and while no node runs.
import sql from 'sql-template-tag';
import type { Config } from './config.ts';
import type { Tx } from './db/db.ts';
import { distribute, hasCitus } from './db/distribute.ts';
import { OperatorError, withInstallation } from './operator.ts';
import { explainStart } from './start-error.ts';

/**
 * Has Citus shard the database by organization, and gives the tables that it distributed: none if that was done before. All of them or
 * none. Throws `OperatorError` or `StartError`.
 */
export async function distributeOnHost(config: Config): Promise<string[]> {
  if (config.databaseUrl === undefined) {
    throw new OperatorError(
      'Only a database of your own can be sharded. Set DATABASE_URL to the coordinator of a Citus cluster.',
    );
  }
  try {
    return await withInstallation(config, (db) =>
      db.transaction(async (tx) => {
        if (!(await hasCitus(tx.query))) {
          throw new OperatorError(
            'The database does not have Citus. Run `create extension citus` in it, and add its workers.',
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

/** A node that runs looks once whether the database is sharded, and would go on as if it were not. */
async function requireStopped(tx: Tx): Promise<void> {
  // Those that run turns or send webhooks have a lease; the others have connections, unless a pooler renames them.
  const found = await tx.query(sql`
    select 1 from workers where lease_expires_at > now()
    union all
    select 1 from pg_stat_activity
    where datname = current_database() and application_name = 'signalbox' and pid <> pg_backend_pid()`);
  if (found.length > 0) {
    throw new OperatorError(
      'Nodes are still running on this database, or were half a minute ago. Stop every one of them and run the command again.',
    );
  }
}
