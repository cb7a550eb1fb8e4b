// The version of everything is `version` of the workspace's package.json. This writes it there and wherever else it has to be.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `0.2.0`, or before a release `0.2.0-rc.1`. */
const VERSION = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9a-z]+(?:\.[0-9a-z]+)*))?$/;
const kinds = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'] as const;

interface Entry extends Partial<Record<(typeof kinds)[number], Record<string, string>>> {
  name?: string;
  version?: string;
  link?: boolean;
}

export function isVersion(text: string): boolean {
  return VERSION.test(text);
}

/** Negative if `a` is before `b`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => VERSION.exec(version)!);
  for (const at of [1, 2, 3]) {
    const difference = Number(left![at]) - Number(right![at]);
    if (difference !== 0) return difference;
  }
  // A pre-release comes before its release.
  const [before, after] = [left![4] ?? '~', right![4] ?? '~'];
  return before === after ? 0 : before < after ? -1 : 1;
}

/** What the code is called after this release, until the next one. */
export function developmentVersion(released: string): string {
  const [, major, minor, patch, prerelease] = VERSION.exec(released)!;
  if (prerelease) return `${major}.${minor}.${patch}-dev`;
  return patch === '0' ? `${major}.${Number(minor) + 1}.0-dev` : `${major}.${minor}.${Number(patch) + 1}-dev`;
}

/** Returns the files, relative to `root`. Writing the same version again changes nothing. */
export function writeVersion(root: string, version: string): string[] {
  if (!isVersion(version)) throw new Error(`${version} is not a version such as 0.2.0 or 0.2.0-rc.1`);
  const manifests = [
    'package.json',
    ...globSync(['packages/*/package.json', 'examples/*/package.json'], { cwd: root }),
  ];
  const names = new Set(manifests.map((file) => (readJson(root, file) as Entry).name!));
  for (const file of manifests) {
    const manifest = readJson(root, file) as Entry;
    setIn(manifest, names, version);
    writeJson(root, file, manifest);
  }
  const lock = readJson(root, 'package-lock.json') as Entry & { packages: Record<string, Entry> };
  lock.version = version;
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (!path.includes('node_modules') && !entry.link) setIn(entry, names, version);
  }
  writeJson(root, 'package-lock.json', lock);
  const openapi = readJson(root, 'openapi.json') as { info: { version: string } };
  openapi.info.version = version;
  writeJson(root, 'openapi.json', openapi);
  const replaced: [string, RegExp, string][] = [
    ['packages/client/src/version.ts', /(?<=version = ')[^']+/, version],
    ['deploy/helm/signalbox/Chart.yaml', /(?<=^(?:version|appVersion): ).+$/gm, version],
  ];
  for (const [file, place, text] of replaced) {
    const path = join(root, file);
    writeFileSync(path, readFileSync(path, 'utf8').replace(place, text));
  }
  return [...manifests, 'package-lock.json', 'openapi.json', ...replaced.map(([file]) => file)].sort();
}

function setIn(entry: Entry, names: ReadonlySet<string>, version: string): void {
  if (entry.version !== undefined) entry.version = version;
  for (const kind of kinds) {
    const all = entry[kind];
    for (const name of Object.keys(all ?? {})) {
      if (names.has(name)) all![name] = all![name]!.startsWith('^') ? `^${version}` : version;
    }
  }
}

function readJson(root: string, file: string): unknown {
  return JSON.parse(readFileSync(join(root, file), 'utf8'));
}

function writeJson(root: string, file: string, value: unknown): void {
  writeFileSync(join(root, file), `${JSON.stringify(value, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeVersion(fileURLToPath(new URL('..', import.meta.url)), process.argv[2] ?? '');
}
