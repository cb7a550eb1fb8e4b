// The version of the PostgreSQL server, and what to do if it lacks security fixes.
import sql from 'sql-template-tag';
import { lacksFixes, newerVersion, versionNumbers } from '../lib/newest-versions.ts';
import type { Queryable } from './db.ts';

export interface ServerVersion {
  /** Such as `18.4`; with the words of a distribution, as the server states it. */
  stated: string;
  major: number;
}

export async function serverVersion(db: Queryable): Promise<ServerVersion> {
  const [row] = await db.query<{ server_version: string }>(sql`show server_version`);
  const stated = row?.server_version ?? '';
  return { stated, major: versionNumbers(stated)[0] ?? 0 };
}

/** What is wrong with an outdated server, and what to do about it; undefined if it has all fixes that this release knows. */
export function outdatedServer(
  { stated, major }: ServerVersion,
  { isEmbedded }: { isEmbedded: boolean },
): { message: string; fix: string } | undefined {
  const newer = newerVersion('PostgreSQL', stated);
  if (!newer) return undefined;
  const message = lacksFixes('PostgreSQL', stated, newer);
  const fix = isEmbedded
    ? 'Only this machine can connect to it. For an installation of several users, move to a PostgreSQL of your own: signalbox move --to URL.'
    : `Update the server, for example with apt-get install --only-upgrade postgresql-${major}. The data stay as they are.`;
  return { message: isEmbedded ? `the embedded ${message}` : message, fix };
}
