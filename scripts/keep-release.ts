// Keeps the code of a release for the tests of upgrades, which run it next to the current code: `test/releases/VERSION.tar.br`, and
// `last.json` with what is in it. Only the last release is kept. A release calls this with its own commit, and adds what it writes in
// the next commit:
//
//   node scripts/keep-release.ts [COMMIT]
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import type { KeptRelease } from '../test/releases/last-release.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const directory = join(root, 'test/releases');

// What a node and a client run.
const names = ['cli', 'client', 'contract', 'embedded-postgres', 'server'];
const kept = ['package.json', ...names.flatMap((name) => [`packages/${name}/package.json`, `packages/${name}/src`])];
const excluded = [':(exclude,glob)packages/*/src/**/*.test.ts'];

/** Replaces the release that was kept before. */
export function keepRelease(revision: string): KeptRelease {
  const commit = git('rev-parse', '--verify', `${revision}^{commit}`).toString().trim();
  const files = git('ls-tree', '-r', '--name-only', commit, '--', ...kept)
    .toString()
    .split('\n');
  const { version } = JSON.parse(git('show', `${commit}:package.json`).toString()) as { version: string };
  const tar = archiveOf(commit);
  const release: KeptRelease = {
    version,
    commit,
    schemaVersion: files.filter((file) => /\/migrations\/\d{4}_\w+\.sql$/.test(file)).length,
    sha256: createHash('sha256').update(tar).digest('hex'),
  };
  for (const old of globSync('*.tar.br', { cwd: directory })) rmSync(join(directory, old));
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  writeFileSync(join(directory, `${version}.tar.br`), brotliCompressSync(tar, { params }));
  writeFileSync(join(directory, 'last.json'), `${JSON.stringify(release, null, 2)}\n`);
  return release;
}

export function archiveOf(commit: string): Buffer {
  return git('archive', '--format=tar', commit, '--', ...kept, ...excluded);
}

function git(...args: string[]): Buffer {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: root, maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`git ${args.slice(0, 2).join(' ')} failed: ${error?.message ?? stderr}`);
  return stdout;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { version, commit, schemaVersion } = keepRelease(process.argv[2] ?? 'HEAD');
  console.log(`Kept ${version} (${commit.slice(0, 8)}, schema version ${schemaVersion}) in test/releases.`);
}
