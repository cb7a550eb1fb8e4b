// A database that contents are loaded into: with the tables that the same migrations made, and without rows.
import { type BulkConnection, openBulkConnection } from '../db/bulk-connection.ts';
import { createDb } from '../db/db.ts';
import { requireSuitable } from '../db/requirements.ts';
import { type AppliedMigration, migrate } from '../db/schema/migrate.ts';
import { readMigrations } from '../db/schema/migration-files.ts';
import type { Contents } from '../db/schema/tables.ts';
import { version as release } from '../lib/version.ts';
import { type Loaded, loadContents } from './load.ts';
import { OperatorError } from './operator.ts';
import type { Progress } from './progress.ts';

const silent = { info() {}, warn() {} };

/** Throws `OperatorError` if this release does not have the migrations of the contents. `what` names them, such as a file. */
export async function requireKnownMigrations(
  { migrations, writtenBy }: { migrations: readonly AppliedMigration[]; writtenBy: string },
  what: string,
): Promise<void> {
  const known = await readMigrations();
  if (migrations.length > known.length) {
    throw new OperatorError(
      `${what} has schema version ${migrations.length}, of Signalbox ${writtenBy}. This release, ${release}, knows versions up to ` +
        `${known.length}. Use Signalbox ${writtenBy} or later.`,
    );
  }
  const other = migrations.find(({ sha256 }, index) => sha256 !== known[index]!.sha256);
  if (other) {
    throw new OperatorError(
      `${what} has another migration ${other.version} (${other.name}) than this release, ${release}: one of the two is an unreleased ` +
        `state. Use the release that wrote it, ${writtenBy}.`,
    );
  }
}

/**
 * Creates the tables, loads the contents, and migrates them to this release. `afterLoading` runs in the transaction that loads them.
 * Throws `OperatorError`, `DatabaseUnsuitable` or `SchemaRefused`.
 */
export async function fillDatabase(
  url: string,
  contents: Contents,
  progress: Progress,
  afterLoading?: (connection: BulkConnection) => Promise<unknown>,
): Promise<Loaded> {
  progress({ step: 'creating tables' });
  await createTables(url, contents.migrations.length);
  const connection = await openBulkConnection(url);
  let loaded: Loaded;
  try {
    loaded = await loadContents(connection, contents, progress, () => afterLoading?.(connection) ?? Promise.resolve());
  } finally {
    connection.close();
  }
  await migrate(url, silent);
  return loaded;
}

async function createTables(url: string, version: number): Promise<void> {
  const db = createDb({ url, max: 1 });
  try {
    await requireSuitable(db);
    await requireNoInstallation(url);
    await migrate(db, silent, { through: version });
  } finally {
    await db.close();
  }
  const connection = await openBulkConnection(url);
  try {
    const [row] = await connection.query<{ version: number }>(
      'select max(version) as version from signalbox_migrations',
    );
    if (row?.version === version) return;
    throw new OperatorError(
      `The database has schema version ${row?.version}, and version ${version} is needed. Use a database that was just created.`,
    );
  } finally {
    connection.close();
  }
}

/** An installation must not be migrated by a command that is then going to refuse it. */
async function requireNoInstallation(url: string): Promise<void> {
  const connection = await openBulkConnection(url);
  try {
    const [table] = await connection.query<{ there: boolean }>(
      `select to_regclass('organizations') is not null and to_regclass('signalbox_migrations') is not null as there`,
    );
    if (!table?.there) return;
    const rows = await connection.query('select 1 from organizations limit 1');
    if (rows.length > 0) {
      throw new OperatorError(
        'The database is not empty: it has an installation of Signalbox. Use an empty database, such as one that was just created.',
      );
    }
  } finally {
    connection.close();
  }
}
