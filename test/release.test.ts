// `npm run release` in a small repository, with the long steps replaced. The packages themselves: packages/cli/test/published.test.ts.
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { compareVersions, developmentVersion, isVersion, writeVersion } from '../scripts/version.ts';
import { type Faults, runRelease } from './release-process.ts';

const workspace = fileURLToPath(new URL('..', import.meta.url));
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sb-release-'));
  const paths = [
    'package.json',
    '*/package.json',
    'package-lock.json',
    'openapi.json',
    'CHANGELOG.md',
    '*/version.ts',
    '*/Chart.yaml',
  ];
  const listed = spawnSync('git', ['ls-files', ...paths], { cwd: workspace, encoding: 'utf8' })
    .stdout.trim()
    .split('\n');
  for (const file of listed) cpSync(join(workspace, file), join(root, file), { recursive: true });
  cpSync(join(workspace, '.gitignore'), join(root, '.gitignore'));
  edit('package.json', (text) =>
    text.replace('"private"', '"repository": { "type": "git", "url": "x" },\n  "private"'),
  );
  writeVersion(root, '0.2.0-dev');
  edit(
    'CHANGELOG.md',
    () => '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n- More\n\n## [0.1.0] - 2026-11-22\n',
  );
  cpSync(
    join(workspace, 'packages/server/test/fixtures/database-0001.json.gz'),
    join(root, 'packages/server/test/fixtures/database-0.2.0.json.gz'),
  );
  git('init', '--quiet', '--initial-branch', 'main');
  for (const [name, value] of [
    ['user.name', 'T'],
    ['user.email', 't@localhost'],
  ])
    git('config', name!, value!);
  commitAll('start');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const read = (file: string) => readFileSync(join(root, file), 'utf8');
const edit = (file: string, change: (text: string) => string) => writeFileSync(join(root, file), change(read(file)));
const commitAll = (message: string) => {
  git('add', '--all');
  git('commit', '--quiet', '--message', message);
};

function git(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  return stdout.trim();
}

/** Everything that a release may change. */
const state = () => [git('rev-parse', 'HEAD'), git('tag'), git('status', '--porcelain'), git('worktree', 'list')];

const release = (version: string, faults: Faults = {}) => runRelease(root, version, faults);

/** Kills the release at a step. */
function kill(step: string): void {
  const program = join(workspace, 'test/release-process.ts');
  const env = { ...process.env, KILL_AT: step };
  expect(spawnSync(process.execPath, [program, root, '0.2.0'], { env }).signal).toBe('SIGKILL');
}

function expectReleased(): void {
  expect(git('log', '--format=%s', '-3')).toBe('packages: begin 0.3.0-dev\npackages: release 0.2.0\nstart');
  expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'HEAD~1'));
  expect(git('status', '--porcelain')).toBe('');
  expect(git('worktree', 'list').split('\n')).toHaveLength(1);
  // The release names no other version of the packages, and the next one no longer this.
  expect(git('show', '--stat=200', '--format=', 'v0.2.0')).toContain('package-lock.json');
  const left = (revision: string, version: string, ...rest: string[]) =>
    spawnSync('git', ['grep', '-nF', version, revision, '--', ':!CHANGELOG.md', ...rest], {
      cwd: root,
      encoding: 'utf8',
    }).stdout;
  expect(left('v0.2.0', '0.2.0-dev')).toBe('');
  expect(left('HEAD', '"0.2.0"', ':!package-lock.json')).toBe('');
  expect(JSON.parse(read('package.json')).version).toBe('0.3.0-dev');
  expect(readdirSync(join(root, 'dist/release/0.2.0')).sort()).toEqual(['SHA256SUMS', 'b-0.2.0.tgz', 'z-0.2.0.tgz']);
}

test('a release is a commit with its tag, packages with checksums, and the beginning of the next version', async () => {
  const { ended, output } = await release('0.2.0');
  expect(ended).toBe(0);
  expectReleased();
  const commands = output.split('\n').filter((line) => line.includes('npm publish'));
  // Packages that others need come first.
  expect(commands.map((line) => line.trim())).toEqual([
    'npm publish dist/release/0.2.0/z-0.2.0.tgz',
    'npm publish dist/release/0.2.0/b-0.2.0.tgz',
  ]);
  const at = (file: string) => readFileSync(join(root, 'dist/release/0.2.0', file));
  const sums = ['z', 'b'].map((name) => `${hash('sha256', at(`${name}-0.2.0.tgz`))}  ${name}-0.2.0.tgz\n`);
  expect(at('SHA256SUMS').toString()).toBe(sums.join(''));
  expect(await release('0.2.0')).toMatchObject({ ended: 1, steps: ['0.2.0 is released already (v0.2.0).'] });
});

test('killed at any step, it has changed nothing, and the same command finishes it', async () => {
  const { steps } = await release('0.2.0', { DRY_RUN: '1' });
  expect(steps).toEqual(['check', 'tree', 'write', 'pack']);
  const start = state();
  for (const step of ['check', 'test', 'tree', 'write', 'pack', 'commit', 'tag', 'next', 'merge', 'done']) {
    kill(step);
    if (!['next', 'merge', 'done'].includes(step)) {
      expect([git('rev-parse', 'HEAD'), git('tag'), git('status', '--porcelain')]).toEqual(start.slice(0, 3));
    }
    expect((await release('0.2.0')).ended, step).toBe(step === 'done' ? 1 : 0);
    expectReleased();
    git('reset', '--quiet', '--hard', start[0]!);
    git('tag', '--delete', 'v0.2.0');
    rmSync(join(root, 'dist'), { recursive: true, force: true });
  }
});

test('a dry run changes nothing, and lists what is missing', async () => {
  edit('package.json', (text) => text.replace('"repository"', '"somewhere"'));
  commitAll('without a repository');
  const before = state();
  const { ended, output } = await release('0.4.0', { DRY_RUN: '1' });
  expect(ended).toBe(0);
  for (const text of ['has no `repository`', 'no section "## [0.4.0]', 'no database of 0.4.0'])
    expect(output).toContain(text);
  expect(state()).toEqual(before);
});

describe('it refuses, and changes nothing, if', async () => {
  test.each<[string, string, () => void]>([
    ['the version is not later', 'The version is 0.5.0', () => writeVersion(root, '0.5.0')],
    [
      'the changelog has no section',
      'has no section',
      () => edit('CHANGELOG.md', (text) => text.replace('[0.2.0]', '[0.1.9]')),
    ],
    ['the section is empty', 'has no section', () => edit('CHANGELOG.md', (text) => text.replace('- More', ''))],
    [
      'changes are still unreleased',
      'still has text',
      () => edit('CHANGELOG.md', (text) => text.replace('[Unreleased]\n', '[Unreleased]\n\n- New\n')),
    ],
    [
      'there is no repository',
      'has no `repository`',
      () => edit('package.json', (text) => text.replace('"repository"', '"x"')),
    ],
    ['no branch is checked out', 'No branch', () => git('checkout', '--quiet', '--detach')],
  ])('%s', async (_, message, change) => {
    change();
    if (git('status', '--porcelain') !== '') commitAll('change');
    const before = state();
    const { ended, steps } = await release('0.2.0');
    expect({ ended, problem: steps.at(-1) }).toEqual({ ended: 1, problem: expect.stringContaining(message) });
    expect(state()).toEqual(before);
  });

  test('a file is not committed', async () => {
    edit('CHANGELOG.md', (text) => `${text}\n`);
    expect((await release('0.2.0')).steps.at(-1)).toContain('not committed');
  });

  test.each(['test', 'write', 'pack'])('a tool fails: %s', async (step) => {
    const before = state();
    expect((await release('0.2.0', { FAIL_AT: step })).ended).toBe(1);
    expect(state()).toEqual(before);
  });

  test('a generated file is not up to date', async () => {
    const before = state();
    const { ended, steps } = await release('0.2.0', { STALE: '1' });
    expect([ended, steps.at(-1)]).toEqual([1, expect.stringContaining('Not up to date: CHANGELOG.md')]);
    expect(state()).toEqual(before);
  });
});

test('versions are ordered, and a pre-release comes before its release', () => {
  const ordered = ['0.1.0', '0.2.0-dev', '0.2.0-rc.1', '0.2.0', '0.2.1', '0.10.0', '1.0.0'];
  expect(ordered.toReversed().toSorted(compareVersions)).toEqual(ordered);
  expect(['v1.0.0', '1.0', '1.0.0+x', '01', '1.0.0-'].map(isVersion)).toEqual([false, false, false, false, false]);
  expect(['0.2.0', '0.2.1', '1.0.0-rc.1'].map(developmentVersion)).toEqual(['0.3.0-dev', '0.2.2-dev', '1.0.0-dev']);
});
