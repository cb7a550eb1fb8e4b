import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { archiveOf } from '../scripts/keep-release.ts';
import { lastRelease, openLastRelease } from './releases/last-release.ts';
import { root } from './sources.ts';

const { version, commit, sha256 } = lastRelease;
// A shallow clone has only the archive.
const hasCommit = spawnSync('git', ['cat-file', '-e', commit], { cwd: root }).status === 0;

test.runIf(hasCommit)('the kept release is what its commit contains', () => {
  expect(createHash('sha256').update(archiveOf(commit)).digest('hex')).toBe(sha256);
});

test('the kept release is the last one of the changelog, and can be run', async () => {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const releases = [...changelog.matchAll(/^## \[(\d[^\]]*)\]/gm)].map(([, release]) => release);
  // The commit of a release still has the one before it.
  expect(releases.slice(0, 2)).toContain(version);
  const { command, client } = await openLastRelease();
  const { stdout } = spawnSync(process.execPath, [command, '--version'], { encoding: 'utf8' });
  expect(stdout.trim()).toBe(version);
  expect(await import(client)).toHaveProperty('Signalbox');
});
