// `signalbox move`: copies the embedded database to another PostgreSQL, and marks it so that no node starts on it by mistake.
//
// Only this command uses the embedded database meanwhile: it has its lock. The other database gets everything in one transaction, and
// with it a comment with the id of this move. A command that was killed is run again: if the comment is there, the transaction was
// committed, and only the mark is left to be written. Otherwise the other database is still empty.
import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { type BulkConnection, openBulkConnection } from '../db/bulk-connection.ts';
import { startMarkedPostgres } from '../db/embedded.ts';
import { snapshotOf } from '../db/schema/tables.ts';
import { readStartMark, removeStartMark, writeStartMark } from '../db/start-mark.ts';
import { checkDatabaseUrl, hasPassword, hostsAndDatabaseOf } from '../db/url.ts';
import { systemClock } from '../lib/clock.ts';
import type { Loaded } from './load.ts';
import { OperatorError, requireDataDirectory } from './operator.ts';
import type { Progress } from './progress.ts';
import { explainStart } from './start-error.ts';
import { fillDatabase, requireKnownMigrations } from './target.ts';

export interface Moved {
  /** Without user and password. */
  to: string;
  /** Undefined if an earlier command had moved everything, and was interrupted just before its end. */
  loaded: Loaded | undefined;
}

/**
 * `wanted` is the URL of an empty database, given as an argument of the command; without it, that of `DATABASE_URL`. Throws
 * `OperatorError` or `StartError`.
 */
export async function moveOnHost(
  { dataDir, databaseUrl }: Pick<Config, 'dataDir' | 'databaseUrl'>,
  wanted: string | undefined,
  progress: Progress,
): Promise<Moved> {
  const to = targetOf(wanted, databaseUrl);
  const place = hostsAndDatabaseOf(to);
  try {
    await requireDataDirectory(dataDir);
    const before = await readStartMark(dataDir);
    if (before?.because === 'restoring') {
      throw new OperatorError('A restore was interrupted in this data directory. Run signalbox restore again first.');
    }
    if (before?.because === 'moved') {
      throw new OperatorError(
        `The database in ${dataDir} was moved to ${before.to} (${before.at}). Start the service with DATABASE_URL set to it.`,
      );
    }
    const server = await startMarkedPostgres(dataDir);
    try {
      const at = systemClock.now().toISOString();
      // An earlier move that was interrupted is continued only if it led to the same place.
      const moveId = before?.to === place ? before.moveId : randomUUID();
      const wasMoved = before?.to === place && (await hasComment(to, moveId));
      await writeStartMark(dataDir, { because: 'moving', to: place, moveId, at });
      const loaded = wasMoved
        ? undefined
        : await copy(server.url, to, moveId, progress).catch(async (error) => {
            // What became of a commit whose response was lost is found out by the next command.
            if (!(await hasComment(to, moveId).catch(() => true))) await removeStartMark(dataDir);
            throw error;
          });
      await writeStartMark(dataDir, { because: 'moved', to: place, moveId, at });
      return { to: place, loaded };
    } finally {
      await server.stop();
    }
  } catch (error) {
    throw explainStart(error, { databaseUrl: to, variable: wanted === undefined ? 'DATABASE_URL' : '--to' });
  }
}

/** Throws `OperatorError`. */
function targetOf(wanted: string | undefined, databaseUrl: string | undefined): string {
  if (wanted === undefined) {
    if (databaseUrl !== undefined) return databaseUrl;
    throw new OperatorError('Say where to: set DATABASE_URL to an empty database, or name one with --to.');
  }
  try {
    checkDatabaseUrl(wanted);
  } catch (error) {
    throw new OperatorError(`--to ${(error as Error).message}`);
  }
  if (!hasPassword(wanted)) return wanted;
  throw new OperatorError(
    '--to contains a password, which other users of this machine can see while the command runs. Set DATABASE_URL instead, or ' +
      'leave the password out of --to and set PGPASSWORD.',
  );
}

async function copy(from: string, to: string, moveId: string, progress: Progress): Promise<Loaded> {
  const source = await openBulkConnection(from);
  try {
    const contents = await snapshotOf(source);
    const writtenBy = contents.migrations.at(-1)?.appliedBy ?? '';
    await requireKnownMigrations({ migrations: contents.migrations, writtenBy }, 'The embedded database');
    return await fillDatabase(to, contents, progress, (target) =>
      target.query(`comment on table signalbox_migrations is '${commentOf(moveId)}'`),
    );
  } finally {
    source.close();
  }
}

const commentOf = (moveId: string) => `Filled by signalbox move ${moveId.replaceAll(/[^0-9a-f-]/g, '')}`;

async function hasComment(url: string, moveId: string): Promise<boolean> {
  const connection: BulkConnection = await openBulkConnection(url);
  try {
    const [row] = await connection.query<{ comment: string | null }>(
      `select obj_description(to_regclass('signalbox_migrations'), 'pg_class') as comment`,
    );
    return row?.comment === commentOf(moveId);
  } finally {
    connection.close();
  }
}
