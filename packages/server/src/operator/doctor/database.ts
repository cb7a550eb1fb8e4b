// Checks of the database, as this node would use it: each query on a connection of its own settings, so that a database which hangs or
// refuses something is reported and never waited for.
import type { Config } from '../../config/config.ts';
import { type BulkConnection, openBulkConnection } from '../../db/bulk-connection.ts';
import { createDb } from '../../db/db.ts';
import { isTransactionPooled, requireSameDatabase } from '../../db/poolers.ts';
import { requireSuitable } from '../../db/requirements.ts';
import { isMigrated } from '../../db/schema/migrate.ts';
import { outdatedServer, serverVersion } from '../../db/server-version.ts';
import { hostsAndDatabaseOf } from '../../db/url.ts';
import { systemClock } from '../../lib/clock.ts';
import { readMasterKeys } from '../../vault/master-key.ts';
import { createVault } from '../../vault/vault.ts';
import { explainStart } from '../start-error.ts';
import { checkAgents } from './agents.ts';
import { failed, ok, type Report, run, skipped, warning, within } from './check.ts';
import { findingOfVacuum } from './vacuum.ts';

/** More connections of a node than SIGNALBOX_DATABASE_CONNECTIONS: for wake-ups, sign-ins and health checks. */
const OTHER_CONNECTIONS = 6;
const CHECK_MS = 5_000;
const CLOCK_WARNING_MS = 2_000;
const CLOCK_FAILURE_MS = 60_000;

type Step = (check: string, find: Parameters<typeof run>[2]) => Promise<void>;

/** `url` is undefined for DATABASE_URL, otherwise of the embedded database. Returns a connection, if there is one. */
export async function checkDatabase(
  config: Config,
  embeddedUrl: string | undefined,
  report: Report,
): Promise<BulkConnection | undefined> {
  const { databaseUrl, listenUrl } = config;
  const url = databaseUrl ?? embeddedUrl!;
  const isPooled = databaseUrl !== undefined && listenUrl !== undefined;
  const place = databaseUrl ? hostsAndDatabaseOf(databaseUrl) : 'the embedded database';
  const db = createDb({ url, max: 2, isPooled, statementTimeoutMs: 10_000 });
  try {
    const isReachable = await run(report, 'database', async () => {
      await db.check().catch((error) => {
        throw explainStart(error, config);
      });
      return ok(`${place} responds`);
    });
    if (!isReachable) return undefined;
    // A database that stops responding would let each further check wait.
    let isGone = false;
    const step: Step = async (check, find) => {
      if (isGone || (await run(report, check, find))) return;
      isGone = await within(db.check(), CHECK_MS).then(
        () => false,
        () => true,
      );
    };
    await step('database.settings', async () => {
      await requireSuitable(db, { isPooled }).catch((error) => {
        throw explainStart(error, config);
      });
      return ok('version, encoding, schema and durability are as required');
    });
    await step('database.version', async () => {
      const version = await serverVersion(db);
      const outdated = outdatedServer(version, { isEmbedded: databaseUrl === undefined });
      return outdated ? warning(outdated.message, outdated.fix) : ok(`PostgreSQL ${version.stated}`);
    });
    await step('database.wake_ups', () => checkWakeUps(config, db, url));
    await step('database.schema', async () => {
      const isCurrent = await isMigrated(db);
      return ok(isCurrent ? 'the schema is that of this release' : 'the next start of the service runs migrations');
    });
    if (isGone) return undefined;
    const connection = await within(openBulkConnection(listenUrl ?? url)).catch(() => undefined);
    if (connection) await checkServer(config, connection, step);
    return connection;
  } finally {
    // It waits for what hangs.
    await within(db.close(), 1_000).catch(() => {});
  }
}

async function checkWakeUps({ databaseUrl, listenUrl }: Config, db: ReturnType<typeof createDb>, url: string) {
  if (listenUrl === undefined) {
    if (databaseUrl !== undefined && (await isTransactionPooled(db))) {
      return failed(
        'DATABASE_URL goes through a transaction pooler',
        'Set SIGNALBOX_LISTEN_URL to a URL that connects to the same database directly.',
      );
    }
    await requireSameDatabase(db, db);
    return ok('a notification arrives');
  }
  const direct = createDb({ url: listenUrl ?? url, max: 2, statementTimeoutMs: 10_000 });
  try {
    if (await isTransactionPooled(direct)) {
      return failed(
        'SIGNALBOX_LISTEN_URL goes through a transaction pooler',
        'Set it to a URL that connects to the database directly.',
      );
    }
    await requireSameDatabase(db, direct);
    return ok('a notification from DATABASE_URL arrives at SIGNALBOX_LISTEN_URL');
  } finally {
    await within(direct.close(), 1_000).catch(() => {});
  }
}

async function checkServer(config: Config, connection: BulkConnection, step: Step): Promise<void> {
  const one = async <Row>(text: string, values?: unknown[]) => (await connection.query<Row>(text, values))[0]!;
  await step('database.rights', async () => {
    const { creates, others, role } = await one<{ creates: boolean; others: string; role: string }>(`
      select current_user::text as role, has_schema_privilege(current_schema(), 'CREATE') as creates,
        (select count(*) from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
          and not pg_has_role(relowner, 'USAGE')) as others`);
    if (!creates)
      return failed(`${role} can't create tables`, 'Make the user the owner of the database or of its schema.');
    if (Number(others) > 0)
      return failed(
        `${others} tables belong to another user than ${role}`,
        `Migrations need the owner: reassign owned by … to ${role}, or use that user.`,
      );
    return ok(`${role} can run migrations`);
  });
  await step('database.collation', async () => {
    const { collation, recorded, actual } = await one<{
      collation: string;
      recorded: string | null;
      actual: string | null;
    }>(`
      select datcollate as collation, datcollversion as recorded, pg_database_collation_actual_version(oid) as actual
      from pg_database where datname = current_database()`);
    if (recorded !== null && actual !== null && recorded !== actual)
      return failed(
        `the collation ${collation} changed from version ${recorded} to ${actual}, so indexes of text may be wrong`,
        'Run reindex database, then alter database … refresh collation version.',
      );
    return ok(collation);
  });
  await step('database.connections', () => checkConnections(config, one));
  await step('database.clock', async () => {
    const before = systemClock.now().getTime();
    const { now } = await one<{ now: Date }>('select clock_timestamp() as now');
    const difference = Math.round(now.getTime() - (before + systemClock.now().getTime()) / 2);
    const text = `the clocks of this machine and of the database differ by ${Math.abs(difference)} ms`;
    const fix = 'Synchronize both clocks with NTP. Schedules, expiries and signatures depend on them.';
    if (Math.abs(difference) > CLOCK_FAILURE_MS) return failed(text, fix);
    return Math.abs(difference) > CLOCK_WARNING_MS ? warning(text, fix) : ok(text);
  });
  await step('database.durability', async () => {
    const { fsync, pages } = await one<{ fsync: string; pages: string }>(
      `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages`,
    );
    if (fsync === 'on' && pages === 'on') return ok('fsync and full_page_writes are on');
    return failed(
      `fsync = ${fsync}, full_page_writes = ${pages}`,
      'Turn both on: a power failure would destroy the database.',
    );
  });
  await step('database.transactions', () => checkTransactions(connection));
  await step('database.vacuum', async () => {
    const { on, age, freezeAge } = await one<{ on: string; age: number; freezeAge: number }>(`
      select current_setting('autovacuum') as on, age(datfrozenxid) as age,
        current_setting('autovacuum_freeze_max_age')::bigint as "freezeAge"
      from pg_database where datname = current_database()`);
    return findingOfVacuum({ on, age: Number(age), freezeAge: Number(freezeAge) });
  });
  await step('nodes', () => checkNodes(connection));
  await step('secrets', () => checkSecrets(config, connection));
  await step('agents', async () =>
    (await isThere(connection, 'agents'))
      ? checkAgents(connection, config.cloudIdentities)
      : skipped('the service was never started on this database'),
  );
}

async function checkConnections({ databaseConnections }: Config, one: <Row>(text: string) => Promise<Row>) {
  const found = await one<{ max: number; role: number; database: number; used: string }>(`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max,
      (select rolconnlimit from pg_roles where rolname = current_user) as role,
      (select datconnlimit from pg_database where datname = current_database()) as database,
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as used`);
  const limit = Math.min(...[found.max, found.role, found.database].filter((one) => one >= 0));
  const own = databaseConnections + OTHER_CONNECTIONS;
  const text = `a node uses up to ${own} connections; the server allows ${limit}, of which ${found.used} are in use`;
  if (own <= limit) return ok(text);
  return warning(text, 'Raise max_connections or the limit of the user, or lower SIGNALBOX_DATABASE_CONNECTIONS.');
}

async function checkTransactions(connection: BulkConnection) {
  const rows = await connection.query<{ what: string; minutes: number }>(`
    select format('a transaction of process %s (%s)', pid, coalesce(nullif(application_name, ''), 'no name')) as what,
      floor(extract(epoch from clock_timestamp() - xact_start) / 60)::int as minutes
    from pg_stat_activity
    where datname = current_database() and xact_start < now() - interval '10 minutes' and pid <> pg_backend_pid()
      and application_name <> 'signalbox copy'
    union all
    select format('the prepared transaction %s', gid), floor(extract(epoch from clock_timestamp() - prepared) / 60)::int
    from pg_prepared_xacts where database = current_database()
    order by minutes desc limit 5`);
  const slots = await connection.query<{ name: string }>(
    'select slot_name::text as name from pg_replication_slots where not active order by slot_name limit 5',
  );
  const findings = [
    ...rows.map(({ what, minutes }) =>
      warning(
        `${what} has been open for ${minutes} minutes`,
        'End it: meanwhile nothing that is deleted can be removed.',
      ),
    ),
    ...slots.map(({ name }) =>
      warning(`nothing reads the replication slot ${name}`, 'Drop it, or its write-ahead log fills the disk.'),
    ),
  ];
  return findings.length > 0 ? findings : ok('none is long');
}

async function isThere(connection: BulkConnection, table: string): Promise<boolean> {
  const [row] = await connection.query<{ there: boolean }>('select to_regclass($1) is not null as there', [table]);
  return row!.there;
}

async function checkNodes(connection: BulkConnection) {
  if (!(await isThere(connection, 'nodes'))) return skipped('the service was never started on this database');
  const [found] = await connection.query<{ alive: string; waiting: string; seconds: number | null }>(`
    -- Where the database is sharded, a subquery of sessions that refers to a node is refused.
    with workers as materialized (
      select s.node_id from sessions s
      where s.queue is not null and s.node_id = any(array(select n.node_id from nodes n where n.lease_expires_at > now())))
    select
      (select count(*) from nodes n where n.lease_expires_at > now()
        and n.node_id not in (select w.node_id from workers w)) as alive,
      (select count(*) from (select 1 from sessions where node_id is null and queue is null and status = 'running'
        and runnable_at < now() - interval '30 seconds' limit 10000) w) as waiting,
      (select extract(epoch from now() - min(runnable_at))::int from sessions
        where node_id is null and queue is null and status = 'running') as seconds`);
  const { alive, waiting, seconds } = found!;
  const text = alive === '1' ? '1 node runs turns or sends webhooks' : `${alive} nodes run turns or send webhooks`;
  if (waiting === '0') return ok(text);
  return warning(
    `${text}; ${waiting} sessions wait for a node, the first for ${seconds} seconds`,
    alive === '0'
      ? 'Start a node with the role runtime.'
      : 'Start more nodes, or look for errors in the logs of these.',
  );
}

/** The key has to be one that the installation knows, and to open what is stored. */
async function checkSecrets({ masterKeys, dataDir }: Config, connection: BulkConnection) {
  const keys = masterKeys ?? (await readMasterKeys(dataDir));
  if (!(await isThere(connection, 'master_keys'))) return skipped('the service was never started on this database');
  const fix = 'Set SIGNALBOX_MASTER_KEY as on the other nodes. If the key is lost: signalbox keys unreadable.';
  const [newest] = await connection.query<{ fingerprint: Buffer }>(
    'select fingerprint from master_keys order by position desc limit 1',
  );
  if (!newest) return ok('none is stored');
  if (!keys) return failed('there is no master key, and the installation has one', fix);
  const vault = createVault(keys);
  if (!vault.fingerprints.some((one) => one.equals(newest.fingerprint)))
    return failed("the master key is not the installation's", fix);
  const rows = await connection.query<{ organization: string; environment: string; name: string; sealed: Buffer }>(
    `select organization_id as organization, environment, name, sealed_value as sealed from environment_secrets
     order by updated_at desc limit 1000`,
  );
  const lost = rows.filter(({ organization, environment, name, sealed }) => {
    try {
      vault.open('environment_secret', [organization, environment, name], sealed);
      return false;
    } catch {
      return true;
    }
  });
  if (lost.length > 0) return failed(`${lost.length} of ${rows.length} secrets can't be decrypted`, fix);
  return ok(rows.length === 0 ? 'the master key is the right one' : `the master key decrypts ${rows.length} secrets`);
}
