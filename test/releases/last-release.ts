// The code of the last release, and of one that comes after the current code, laid out so that their nodes and clients can be run.
//
// The last release is in an archive in this folder rather than in the history of git, because a clone may have no history. Its
// dependencies are those of this repository.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import last from './last.json' with { type: 'json' };

export interface KeptRelease {
  version: string;
  commit: string;
  /** The number of its last migration. */
  schemaVersion: number;
  /** The SHA-256 of the archive before it is compressed. */
  sha256: string;
}

/** A directory with `packages/`, as in this repository. */
export interface Release {
  directory: string;
  /** To run with Node: the command `signalbox`. */
  command: string;
  /** To import: `@signalbox/client`. */
  client: string;
}

export const lastRelease: KeptRelease = last;

const root = fileURLToPath(new URL('../../', import.meta.url));
// Outside node_modules, where Node does not strip types.
const cache = join(root, '.cache/releases');

/** Throws if the archive is not the one that was kept. */
export async function openLastRelease(): Promise<Release> {
  const { version, sha256 } = lastRelease;
  const directory = join(cache, `${version}-${sha256.slice(0, 12)}`);
  const found = await readdir(directory).catch(() => []);
  if (found.length === 0) {
    const tar = brotliDecompressSync(await readFile(new URL(`${version}.tar.br`, import.meta.url)));
    const actual = createHash('sha256').update(tar).digest('hex');
    if (actual !== sha256) throw new Error(`The archive of ${version} has the SHA-256 ${actual}, not ${sha256}`);
    const unpacked = await newDirectory();
    const { status, stderr, error } = spawnSync('tar', ['-x', '-C', unpacked], { input: tar });
    if (status !== 0) throw new Error(`The archive can't be unpacked: ${error?.message ?? stderr}`);
    await linkDependencies(unpacked);
    // Another test file may have been faster.
    await rename(unpacked, directory).catch(() => rm(unpacked, { recursive: true }));
  }
  return releaseIn(directory);
}

/** The current code with more migrations: each file name with its text. Delete the directory after use. */
export async function createNextRelease(migrations: Readonly<Record<string, string>>): Promise<Release> {
  const directory = await newDirectory();
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } });
  await writeFile(join(directory, 'package.json'), JSON.stringify(manifest));
  for (const name of packages) {
    const to = join(directory, 'packages', name);
    await mkdir(to, { recursive: true });
    for (const part of ['package.json', 'src']) {
      await cp(join(root, 'packages', name, part), join(to, part), { recursive: true });
    }
  }
  await linkDependencies(directory);
  for (const [file, text] of Object.entries(migrations)) {
    await writeFile(join(directory, 'packages/server/src/db/migrations', file), text);
  }
  return releaseIn(directory);
}

const packages = ['cli', 'client', 'contract', 'embedded-postgres', 'server'];

async function newDirectory(): Promise<string> {
  await mkdir(cache, { recursive: true });
  return mkdtemp(join(cache, 'new-'));
}

/** Packages of this directory find each other, and those of others in the repository around it. */
async function linkDependencies(directory: string): Promise<void> {
  const scope = join(directory, 'node_modules/@signalbox');
  await mkdir(scope, { recursive: true });
  for (const name of packages) {
    if (name !== 'cli') await symlink(join('../../packages', name), join(scope, name));
    const own = join(root, 'packages', name, 'node_modules');
    if ((await readdir(own).catch(() => [])).length > 0)
      await symlink(own, join(directory, 'packages', name, 'node_modules'));
  }
}

function releaseIn(directory: string): Release {
  return {
    directory,
    command: join(directory, 'packages/cli/src/main.ts'),
    client: pathToFileURL(join(directory, 'packages/client/src/index.ts')).href,
  };
}
