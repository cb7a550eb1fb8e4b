// Packages from a folder with tarballs instead of from npm: before a release, and for a change of one's own.
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** What a project depends on, and what that depends on. */
const ownPackages = [
  'signalbox',
  '@signalbox/client',
  '@signalbox/console',
  '@signalbox/contract',
  '@signalbox/embedded-postgres',
  '@signalbox/react',
  '@signalbox/server',
];

/** The tarball of each package, as `npm pack` names it. Throws if one of this version is missing. */
export function findTarballs(folder: string, version: string): ReadonlyMap<string, string> {
  if (!existsSync(folder)) throw new Error(`--packages: there is no folder ${folder}.`);
  const files = readdirSync(folder);
  const wanted = ownPackages.map(
    (name) => [name, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`] as const,
  );
  const missing = wanted.filter(([, file]) => !files.includes(file)).map(([, file]) => file);
  if (missing.length > 0) {
    throw new Error(
      `--packages: ${folder} has no ${missing.join(', ')}. In the repository of Signalbox: npm run build && npm pack ./dist/* --pack-destination ${folder}`,
    );
  }
  return new Map(wanted.map(([name, file]) => [name, join(resolve(folder), file)]));
}
