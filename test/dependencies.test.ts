// The list of dependencies that were checked against advisories, in SECURITY.md.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './sources.ts';

interface Locked {
  version: string;
  dev?: boolean;
}

const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const { packages } = readJson('package-lock.json') as { packages: Record<string, Locked> };

/** The versions that the lock file has of a package: in what is published, or else in the console and the tests. */
function lockedVersions(name: string): string[] {
  const all = Object.entries(packages).flatMap(([path, locked]) =>
    path.endsWith(`node_modules/${name}`) ? [locked] : [],
  );
  const published = all.filter(({ dev }) => !dev);
  return [...new Set((published.length > 0 ? published : all).map(({ version }) => version))].toSorted();
}

const listed = Array.from(
  readFileSync(join(root, 'SECURITY.md'), 'utf8').matchAll(/^\| `([^`]+)` \| ([\d][^|]*) \|/gm),
  ([, name, versions]) => ({ name: name!, versions: versions!.split(', ') }),
);

test('a version in use was checked against advisories: check a new one, then change its row in SECURITY.md', () => {
  expect(listed.map(({ name }) => ({ name, versions: lockedVersions(name) }))).toEqual(listed);
});

test('every dependency of a published package is in the list', () => {
  const needed = readdirSync(join(root, 'packages')).flatMap((name) =>
    Object.keys((readJson(`packages/${name}/package.json`) as { dependencies?: object }).dependencies ?? {}),
  );
  const names = new Set(listed.map(({ name }) => name));
  expect(needed.filter((name) => !name.startsWith('@signalbox/') && !names.has(name))).toEqual([]);
});
