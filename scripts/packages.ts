// The packages of the workspace that are published: all of packages/*, each after those that it depends on.
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export interface Manifest {
  name: string;
  version: string;
  bin?: Record<string, string>;
  exports: Record<string, string>;
  /** Folders to copy: where in the published package, and where they are in the workspace. */
  build?: Record<string, string>;
  /** How its code becomes bundles (bundle.ts); a package without it is compiled file by file. */
  bundle?: Bundle;
  scripts?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  repository?: { type: string; url: string };
  homepage?: string;
  bugs?: { url: string };
  [field: string]: unknown;
}

export interface Bundle {
  /** Files that are loaded by their path, beside those that are exported. */
  entries: string[];
  /** The packages whose code is in the bundles. */
  inline: string[];
}

export interface Package {
  name: string;
  /** The name of its folder, in packages/ and in dist/. */
  folder: string;
  source: string;
  /** Where it is built to, and published from. */
  built: string;
  manifest: Manifest;
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

export function packages(): Package[] {
  const all = globSync('packages/*/package.json', { cwd: root })
    .sort()
    .map((file) => {
      const source = join(root, dirname(file));
      const folder = basename(source);
      const manifest = readManifest(source);
      return { name: manifest.name, folder, source, built: join(root, 'dist', folder), manifest };
    });
  const sorted: Package[] = [];
  const add = (one: Package): void => {
    if (sorted.includes(one)) return;
    const needed = { ...one.manifest.dependencies, ...one.manifest.peerDependencies };
    for (const other of all) if (other.name in needed) add(other);
    sorted.push(one);
  };
  all.forEach(add);
  return sorted;
}
