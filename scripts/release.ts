/**
 * Makes a release, except for the publishing itself, and prints the commands for that.
 *
 *     npm run release -- VERSION [--skip-tests] [--dry-run]
 *
 * Everything is written, built and committed in a second work tree (.cache/release). The branch moves last, so a release that stops
 * half-way has changed nothing but perhaps added its tag; the same command then finishes it. docs/operations/releasing.md.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Packed } from './pack.ts';
import { type Manifest, readManifest } from './packages.ts';
import { compareVersions, developmentVersion, isVersion, writeVersion } from './version.ts';

/** What a release runs that takes long, or that a test does without. */
export interface Tools {
  /** Runs all tests. Throws if one fails. */
  test(root: string): void;
  /** Writes all generated files of a work tree. */
  generate(tree: string): void;
  /** Builds, packs and checks the packages of a work tree, those first that others need. */
  pack(tree: string, destination: string): Promise<Packed[]>;
  /** Writes what the next version's tests of upgrades need of this release. */
  keep(tree: string, commit: string): void;
  /** Called before each step. */
  step(name: string): void;
}

export interface Options {
  skipTests?: boolean | undefined;
  dryRun?: boolean | undefined;
}

export class ReleaseError extends Error {}

/** Resolves to what to do next, for the person who releases. Throws `ReleaseError` with what to fix. */
export async function release(root: string, version: string, options: Options, tools: Tools): Promise<string> {
  const { skipTests = false, dryRun = false } = options;
  if (!isVersion(version)) throw new ReleaseError(`${version} is not a version such as 0.2.0 or 0.2.0-rc.1`);
  const git = (...args: string[]) => gitIn(root, ...args);
  const tag = `v${version}`;
  const tree = join(root, '.cache/release');
  // The folder of a release that was killed may be left.
  removeTree(root, tree);
  const isTagged = git('tag', '--list', tag) !== '';
  if (isTagged && isAncestor(root, tag)) throw new ReleaseError(`${version} is released already (${tag}).`);

  tools.step('check');
  const problems = problemsOf(root, version);
  if (problems.length > 0 && !dryRun) throw new ReleaseError(problems.join('\n'));

  if (!dryRun && !skipTests && !isTagged) {
    tools.step('test');
    tools.test(root);
  }

  const output = join(root, 'dist/release', version);
  try {
    tools.step('tree');
    git('worktree', 'add', '--quiet', '--detach', tree, isTagged ? tag : 'HEAD');
    linkModules(root, tree);
    if (!isTagged) {
      tools.step('write');
      const written = writeVersion(tree, version);
      tools.generate(tree);
      requireGenerated(tree, written);
      tools.step('pack');
      const packed = join(tree, '.cache/packed');
      mkdirSync(packed, { recursive: true });
      const all = await tools.pack(tree, packed);
      const lines = all.map(
        ({ file }) => `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${basename(file)}\n`,
      );
      writeFileSync(join(packed, 'SHA256SUMS'), lines.join(''));
      if (dryRun) return dryRunReport(version, all, problems);
      rmSync(output, { recursive: true, force: true });
      mkdirSync(dirname(output), { recursive: true });
      renameSync(packed, output);
      tools.step('commit');
      commit(tree, `packages: release ${version}`);
      tools.step('tag');
      gitIn(tree, 'tag', '--annotate', tag, '--message', `Signalbox ${version}`);
    } else if (dryRun) {
      return `${tag} exists, but its branch doesn't include it yet. Without --dry-run, this finishes the release.\n`;
    }
    tools.step('next');
    const next = developmentVersion(version);
    writeVersion(tree, next);
    tools.keep(tree, tag);
    commit(tree, `packages: begin ${next}`);
    tools.step('merge');
    git('merge', '--quiet', '--ff-only', gitIn(tree, 'rev-parse', 'HEAD'));
    tools.step('done');
  } finally {
    removeTree(root, tree);
  }
  return nextSteps(root, version, output);
}

/** What keeps a version from being released. */
function problemsOf(root: string, version: string): string[] {
  const problems: string[] = [];
  const current = readManifest(root).version;
  if (compareVersions(version, current) <= 0) problems.push(`The version is ${current}; ${version} is not later.`);
  if (gitIn(root, 'status', '--porcelain') !== '') problems.push('The work tree has changes that are not committed.');
  if (gitIn(root, 'branch', '--show-current') === '') problems.push('No branch is checked out.');
  if (!(readManifest(root) as Partial<Manifest>).repository?.url) {
    problems.push(
      'package.json has no `repository`. npm needs the public address of the sources to prove where packages come from.',
    );
  }
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  if (sectionOf(changelog, version) === undefined) {
    problems.push(`CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD" with what changed.`);
  } else if (sectionOf(changelog, 'Unreleased') !== undefined) {
    problems.push(`CHANGELOG.md still has text under "Unreleased". Move it to ${version}.`);
  }
  const [number] = version.split('-');
  if (!existsSync(join(root, `packages/server/test/fixtures/database-${number}.json.gz`))) {
    problems.push(
      `There is no database of ${number} for the tests of upgrades. Run npm run fixture, and commit what it writes.`,
    );
  }
  return problems;
}

/** The text of a version's section. Undefined if there is none. */
function sectionOf(changelog: string, version: string): string | undefined {
  const heading = `\n## [${version}]${version === 'Unreleased' ? '\n' : ' - '}`;
  const start = changelog.indexOf(heading);
  if (start < 0) return undefined;
  const rest = changelog.slice(changelog.indexOf('\n', start + 1));
  const end = rest.search(/\n(## |\[[^\]]+\]: )/);
  return (end < 0 ? rest : rest.slice(0, end)).trim() || undefined;
}

/** The version is all that may differ: other generated files were to be committed with what they are generated from. */
function requireGenerated(tree: string, written: readonly string[]): void {
  const changed = gitIn(tree, 'diff', '--name-only').split('\n').filter(Boolean);
  const stale = changed.filter((file) => !written.includes(file));
  if (gitIn(tree, 'diff', '--numstat', '--', 'openapi.json').split('\t')[0] !== '1') stale.push('openapi.json');
  if (stale.length > 0) {
    throw new ReleaseError(
      `Not up to date: ${stale.join(', ')}. Run npm run generate, openapi and schema, and commit.`,
    );
  }
}

/** The installed dependencies, with this tree's own packages. */
function linkModules(root: string, tree: string): void {
  mkdirSync(join(tree, 'node_modules/@signalbox'), { recursive: true });
  for (const at of ['', ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}`)]) {
    const from = join(root, at, 'node_modules');
    if (!existsSync(from) || !existsSync(join(tree, at))) continue;
    const to = join(tree, at, 'node_modules');
    mkdirSync(to, { recursive: true });
    for (const name of readdirSync(from)) {
      if (!['@signalbox', 'signalbox', 'create-signalbox'].includes(name) && !name.startsWith('.')) {
        symlinkSync(join(from, name), join(to, name));
      }
    }
  }
  for (const folder of readdirSync(join(tree, 'packages'))) {
    const source = join(tree, 'packages', folder);
    symlinkSync(source, join(tree, 'node_modules', readManifest(source).name));
  }
}

function commit(tree: string, subject: string): void {
  gitIn(tree, 'commit', '--quiet', '--all', '--message', subject);
}

function removeTree(root: string, tree: string): void {
  rmSync(tree, { recursive: true, force: true });
  gitIn(root, 'worktree', 'prune');
}

function dryRunReport(version: string, all: readonly Packed[], problems: readonly string[]): string {
  const packed = all.map(({ file, files }) => `  ${basename(file)}: ${files.length} files\n`).join('');
  const rest = problems.length > 0 ? `Before the release:\n${problems.map((text) => `  - ${text}\n`).join('')}` : '';
  return `Built and checked ${version}:\n${packed}Nothing was changed.\n${rest}`;
}

function nextSteps(root: string, version: string, output: string): string {
  const folder = output.slice(root.length).replace(/^\//, '');
  // The order in SHA256SUMS is that in which they were packed.
  const sums = readFileSync(join(output, 'SHA256SUMS'), 'utf8');
  const files = sums
    .trim()
    .split('\n')
    .map((line) => line.split('  ')[1]);
  const channel = version.includes('-') ? ' --tag next' : '';
  const branch = gitIn(root, 'branch', '--show-current');
  return `Released ${version}, here only. To publish it:

  git push --atomic origin ${branch} v${version}
  (cd ${folder} && sha256sum --check SHA256SUMS)
${files.map((file) => `  npm publish ${folder}/${file}${channel}\n`).join('')}`;
}

function gitIn(cwd: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
  if (status !== 0) throw new ReleaseError(`git ${args.join(' ')} failed:\n${stdout}${stderr}`);
  return stdout.trim();
}

function isAncestor(root: string, revision: string): boolean {
  return spawnSync('git', ['merge-base', '--is-ancestor', revision, 'HEAD'], { cwd: root }).status === 0;
}

function node(cwd: string, script: string, ...args: string[]): void {
  const { status } = spawnSync(process.execPath, [join(cwd, script), ...args], { cwd, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new ReleaseError(`node ${[script, ...args].join(' ')} failed.`);
}

const tools: Tools = {
  test: (root) => node(root, 'scripts/test.mjs'),
  generate(tree) {
    node(tree, 'packages/client/scripts/generate.ts');
    node(tree, 'packages/server/scripts/write-openapi.ts');
    node(tree, 'packages/server/scripts/dump-schema.ts');
  },
  async pack(tree, destination) {
    node(tree, 'scripts/build-package.ts');
    const at = (file: string) => join(tree, 'scripts', file);
    const { packages } = (await import(at('packages.ts'))) as typeof import('./packages.ts');
    const { packFolders, problemsOf } = (await import(at('pack.ts'))) as typeof import('./pack.ts');
    const folders = packages().map(({ built }) => built);
    const packed = packFolders(folders, destination);
    const problems = await Promise.all(packed.map((one, index) => problemsOf(folders[index]!, one)));
    if (problems.flat().length > 0) throw new ReleaseError(problems.flat().join('\n'));
    return packed;
  },
  keep(tree, revision) {
    node(tree, 'scripts/keep-release.ts', revision);
    gitIn(tree, 'add', 'test/releases');
  },
  step: (name) => console.error(`── ${name}`),
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'dry-run': { type: 'boolean' }, 'skip-tests': { type: 'boolean' } },
  });
  const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
  const options = { dryRun: values['dry-run'], skipTests: values['skip-tests'] };
  try {
    if (positionals.length !== 1) throw new ReleaseError('Name the version: npm run release -- 0.2.0');
    process.stdout.write(await release(root, positionals[0]!, options, tools));
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
