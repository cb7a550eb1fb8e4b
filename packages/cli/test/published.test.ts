// The packages as npm gets them: built, packed, and used outside of the repository. Their dependencies are those that are installed
// here; `npm run prove -- install` installs everything from the registry instead.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { buildPackage } from '../../../scripts/build-package.ts';
import { npm, type Packed, packFolders, problemsOf } from '../../../scripts/pack.ts';
import { packages, root } from '../../../scripts/packages.ts';
import { NEWER_NODE } from '../src/newer-node.ts';

const all = packages();
const temporary = mkdtempSync(join(tmpdir(), 'sb-published-'));
const built = (folder: string) => join(temporary, 'built', folder);
const installed = (name: string) => join(temporary, 'app/node_modules', name);
const command = () => join(installed('signalbox'), 'bin.mjs');
let packed: Packed[];

beforeAll(() => {
  for (const { source, folder } of all) buildPackage(source, built(folder));
  packed = packFolders(
    all.map(({ folder }) => built(folder)),
    temporary,
  );
  for (const { name, file } of packed) {
    mkdirSync(installed(name), { recursive: true });
    expect(spawnSync('tar', ['-xzf', file, '--strip-components=1', '-C', installed(name)]).status).toBe(0);
  }
  // The server's own folder has what it needs in another version than the rest of the workspace.
  const registry = [join(root, 'packages/server/node_modules'), join(root, 'node_modules')];
  for (const folder of registry) {
    for (const name of globSync(['*', '@*/*'], { cwd: folder })) {
      if (/^(@[^/]+|@signalbox\/.*|signalbox|create-signalbox)$/.test(name)) continue;
      mkdirSync(dirname(installed(name)), { recursive: true });
      if (!readdirSync(dirname(installed(name))).includes(name.split('/').at(-1)!)) {
        symlinkSync(join(folder, name), installed(name));
      }
    }
  }
}, 240_000);
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A child whose output is collected. */
function run(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, { cwd: temporary, env: { ...process.env, ...env }, stdio: 'pipe' });
  children.push(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return { child, output, ended };
}

/** The files of a bundled package that are loaded by their path, without the extension. */
const entriesOf = ({ exports, bundle }: (typeof all)[number]['manifest']) =>
  [...Object.values(exports), ...bundle!.entries]
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replace('./src/', '').replace(/\.ts$/, ''));

test('each package contains what its sources compile to, what it declares to copy, and nothing else', () => {
  for (const [index, { folder, source, manifest }] of all.entries()) {
    const code = globSync('**/*.ts', { cwd: join(source, 'src') })
      .filter((file) => !/\.test\.ts$/.test(file) && folder !== 'console')
      .map((file) => file.replace(/\.ts$/, ''));
    const data = globSync('**/*', { cwd: join(source, 'src'), withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.ts') && folder !== 'console')
      .map((entry) => join(entry.parentPath, entry.name).slice(join(source, 'src/').length));
    const expected = [
      'LICENSE',
      'README.md',
      'package.json',
      ...(manifest.bundle
        ? ['THIRD-PARTY-LICENSES.txt', ...entriesOf(manifest).flatMap((file) => [`${file}.js`, `${file}.js.map`])]
        : code.flatMap((file) => [`${file}.js`, `${file}.js.map`])),
      ...(manifest.exports['.'] ? code.map((file) => `${file}.d.ts`) : []),
      ...data,
    ];
    const isChunk = (file: string) => manifest.bundle !== undefined && /^chunks\/[\w-]+\.js(\.map)?$/.test(file);
    const copied = (file: string) =>
      isChunk(file) || Object.keys(manifest.build ?? {}).some((to) => file === to || file.startsWith(`${to}/`));
    const { files } = packed[index]!;
    expect(files.filter((file) => !copied(file))).toEqual(expected.sort());
    expect(files.filter((file) => /\.test\.|node_modules|(^|\/)\.(env|vite|stamp|cache)/.test(file))).toEqual([]);
  }
  const dataOf = (name: string) =>
    packed.find((one) => one.name === name)!.files.filter((file) => !/\.(js|d\.ts|map)$/.test(file));
  expect(dataOf('@signalbox/server')).toContainEqual(expect.stringMatching(/^db\/migrations\/0001_\w+\.sql$/));
  expect(dataOf('@signalbox/console')).toContain('dist/index.html');
  expect(dataOf('create-signalbox')).toEqual(expect.arrayContaining(['template/_package.json', 'chat/index.html']));
});

test('no built file refers to a source file, and each source map contains its source', () => {
  for (const { folder, name } of all) {
    if (name === '@signalbox/console') continue;
    for (const file of globSync('**/*.{js,d.ts}', { cwd: built(folder), exclude: ['template/**', 'chat/**'] })) {
      const text = readFileSync(join(built(folder), file), 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
      expect(text, `${name}/${file}`).not.toMatch(/['"]\.{1,2}\/[^'"]*\.ts['"]/);
      if (!file.endsWith('.js')) continue;
      const map = JSON.parse(readFileSync(join(built(folder), `${file}.map`), 'utf8')) as Record<string, string[]>;
      const { sources, sourcesContent } = map;
      const texts = sourcesContent!.filter((source) => typeof source === 'string');
      // An entry may have only what it imports from a chunk.
      expect(texts, `${name}/${file}`).toHaveLength(sources!.length);
    }
  }
});

test('the service is few files, with the licenses of what others wrote', () => {
  const bundled = all.filter(({ manifest }) => manifest.bundle !== undefined);
  expect(bundled.map(({ name }) => name)).toEqual(['@signalbox/server', 'signalbox']);
  for (const { folder } of bundled) {
    const licenses = readFileSync(join(built(folder), 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    expect(licenses).toMatch(/^typebox [\d.]+ \(MIT\)\n\nTypeBox\n\nThe MIT License/);
  }
  const loaded = spawnSync(process.execPath, [
    '--input-type=module',
    '-e',
    COUNT,
    join(installed('@signalbox/server'), 'main.js'),
  ]);
  // The server's bundles and chunks; 1,279 files before they were bundled, with those of TypeBox and of the contract.
  expect(Number(loaded.stdout), `${loaded.stderr}`).toBeLessThan(30);
});

/** Prints how many files of Signalbox and of TypeBox the import of a file loads. */
const COUNT = `
  import { registerHooks } from 'node:module';
  let loaded = 0;
  registerHooks({
    load(url, context, next) {
      if (/@signalbox\\/|\\/typebox\\//.test(url)) loaded += 1;
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log(loaded);
  process.exit();
`;

test('every link and picture in the Markdown of a package is in that package', () => {
  const links = all.flatMap(({ folder }) =>
    globSync('**/*.md', { cwd: built(folder) }).flatMap((file) => {
      const text = readFileSync(join(built(folder), file), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
      return [...text.matchAll(/\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"/g)]
        .map(([, link, source]) => (link ?? source)!.replace(/#.*/, ''))
        .filter((link) => link !== '' && !/^[a-z]+:/.test(link))
        .map((link) => join(built(folder), dirname(file), link));
    }),
  );
  expect(links.length).toBeGreaterThan(200);
  expect(links.filter((link) => !existsSync(link))).toEqual([]);
});

test('publint and attw find nothing in any package', async () => {
  const found = await Promise.all(all.map(({ folder }, index) => problemsOf(built(folder), packed[index]!)));
  expect(found.flat()).toEqual([]);
}, 180_000);

test('every package has the version of the workspace, and depends on the others in that version', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  for (const [index, { name, manifest }] of all.entries()) {
    expect({ name, version: packed[index]!.version }).toEqual({ name, version });
    const own = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.peerDependencies });
    for (const [other, range] of own.filter(([other]) => all.some((one) => one.name === other))) {
      expect(range.replace(/^\^/, ''), `${name} needs ${other}`).toBe(version);
    }
  }
});

test('a source folder can be neither packed nor published', () => {
  for (const { source, manifest } of all) {
    expect(manifest.private).toBe(true);
    expect(() => npm(['pack', '--dry-run'], source)).toThrow('This folder has only sources');
    expect(() => npm(['publish', '--dry-run'], source)).toThrow('This folder has only sources');
  }
});

test('the command runs from its packages: it starts the service, creates a key, and the demo passes', async () => {
  const env = {
    SIGNALBOX_DATA_DIR: join(temporary, 'data'),
    SIGNALBOX_EGRESS_ALLOW: '127.0.0.1',
    SIGNALBOX_PORT: '0',
    SIGNALBOX_LOG_FORMAT: 'json',
    DATABASE_URL: '',
  };
  const service = run([command(), 'start'], env);
  await expect.poll(() => service.output.stderr, { timeout: 60_000 }).toContain('is running');
  const [, url = ''] = /API +(http:\S+)\/api\/v1/.exec(service.output.stderr)!;
  const page = await fetch(`${url}/console/`);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('/console/assets/')]);

  const key = run([command(), 'keys', 'create', '--name', 'first', '--permission', 'admin'], env);
  expect(await key.ended, key.output.stderr).toBe(0);
  const demo = run([join(root, 'examples/demo/main.ts'), '--yes', '--url', url], {
    SIGNALBOX_API_KEY: key.output.stdout.trim(),
  });
  expect(await demo.ended, demo.output.stdout + demo.output.stderr).toBe(0);

  service.child.kill('SIGTERM');
  expect(await service.ended).toBe(0);
}, 120_000);

test('an older Node gives way to a newer one, which ends as the command does and with it', async () => {
  const launch = join(temporary, 'launch.mjs');
  const urlOf = (file: string) => pathToFileURL(join(installed('signalbox'), file)).href;
  writeFileSync(
    launch,
    `import { runOnNewerNode } from '${urlOf('newer-node.js')}';
    await runOnNewerNode(process.argv[2], ['given'], new URL('${urlOf('with-launcher.js')}'));`,
  );
  const program = join(temporary, 'program.mjs');

  writeFileSync(program, 'console.log(process.version, process.argv[2], process.execPath); process.exitCode = 7;');
  const first = run([launch, program]);
  expect(await first.ended, first.output.stderr).toBe(7);
  const [, version] = NEWER_NODE[`${process.platform}-${process.arch}`]!.split('@');
  expect(first.output.stdout).toMatch(new RegExp(`^v${version} given \\S*_npx\\S*\\n$`));

  writeFileSync(
    program,
    "process.once('SIGTERM', () => process.exit(9)); setInterval(() => {}, 1e6); console.log(process.pid);",
  );
  const stopped = run([launch, program]);
  await expect.poll(() => stopped.output.stdout).toMatch(/\d/);
  stopped.child.kill('SIGTERM');
  expect(await stopped.ended).toBe(9);

  const killed = run([launch, program]);
  await expect.poll(() => killed.output.stdout).toMatch(/\d/);
  killed.child.kill('SIGKILL');
  const isRunning = () => {
    try {
      return process.kill(Number(killed.output.stdout), 0);
    } catch {
      return false;
    }
  };
  await expect.poll(isRunning).toBe(false);
}, 120_000);
