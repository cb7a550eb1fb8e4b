/**
 * Builds the folders that are published: JavaScript, which is bundled for the packages that start, declarations, source maps, and a
 * package.json of its own.
 *
 *     npm run build [-- NAME …]     packages/NAME to dist/NAME; without a name all of them
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundlePackage } from './bundle.ts';
import { type Manifest, packages, readManifest, root } from './packages.ts';
import { relink } from './relink.ts';

const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));

/** `source` is the package's folder; `folder` is emptied first. Throws with the compiler's messages if it fails. */
export function buildPackage(source: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const manifest = readManifest(source);
  if (existsSync(join(source, 'tsconfig.build.json'))) compile(source, folder, manifest);
  if (manifest.name === '@signalbox/console') run(join(source, 'scripts/build.mjs'));
  for (const [to, from] of Object.entries(manifest.build ?? {})) {
    // The hidden files of the console's build are for tests and for the next build.
    const filter = (path: string) => !/(\/(node_modules|data|\.[^/]*)|\.test\.ts)$/.test(path);
    cpSync(join(source, from), join(folder, to), { recursive: true, filter });
  }

  const published = publishedManifest(manifest, basename(source), readdirSync(folder).sort());
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  copyFileSync(join(source, 'README.md'), join(folder, 'README.md'));
  const origins = Object.entries({ 'README.md': 'README.md', ...manifest.build }).map(([to, from]) => [
    to,
    relative(root, join(source, from)),
  ]);
  relink(folder, root, Object.fromEntries(origins));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

function compile(source: string, folder: string, manifest: Manifest): void {
  const project = ['-p', join(source, 'tsconfig.build.json'), '--outDir', folder];
  if (manifest.bundle) {
    // The declarations of a package that exports nothing would be of no use.
    run(join(typescript, 'bin/tsc'), ...project, ...(manifest.exports['.'] ? ['--emitDeclarationOnly'] : ['--noEmit']));
    bundlePackage(source, folder, manifest);
  } else run(join(typescript, 'bin/tsc'), ...project);
  // tsc rewrites the imports of JavaScript only, and older compilers can't resolve `./x.ts` in a declaration. Nor does it know that
  // `new URL('./x.ts', import.meta.url)` is a file of code. The replacement is as long, so the source maps remain true.
  for (const file of globSync(join(folder, '**/*.{js,d.ts}'))) {
    const text = readFileSync(file, 'utf8');
    const built = text.replace(/((?:from |import\(|new URL\()(['"])\.{1,2}\/[^'"]+)\.ts\2/g, '$1.js$2');
    if (built !== text) writeFileSync(file, built);
  }
  // What the code reads at run time, such as migrations.
  const sources = join(source, 'src');
  for (const entry of readdirSync(sources, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.endsWith('.ts')) continue;
    const file = join(entry.parentPath, entry.name);
    cpSync(file, join(folder, file.slice(sources.length)));
  }
}

/** Leaves out what only the workspace needs, such as dependencies that are compiled in or only for tests. */
function publishedManifest(manifest: Manifest, folder: string, files: string[]): Record<string, unknown> {
  const { private: _, scripts, build, bundle, devDependencies, exports, bin, ...kept } = manifest;
  const { repository, homepage, bugs } = readManifest(root);
  const built = (file: string) => file.replace('./src/', './').replace(/\.ts$/, '');
  const entry = (file: string) =>
    file.endsWith('.ts') ? { types: `${built(file)}.d.ts`, default: `${built(file)}.js` } : file;
  const main = exports['.'];
  return {
    ...kept,
    ...(homepage && { homepage }),
    ...(bugs && { bugs }),
    ...(repository && { repository: { ...repository, directory: `packages/${folder}` } }),
    ...(bin && {
      bin: Object.fromEntries(
        Object.entries(bin).map(([name, file]) => [name, file.endsWith('.ts') ? `${built(file)}.js` : built(file)]),
      ),
    }),
    exports: Object.fromEntries(Object.entries(exports).map(([path, file]) => [path, entry(file)])),
    ...(main && { types: `${built(main)}.d.ts` }),
    files,
    publishConfig: { access: 'public', provenance: true },
  };
}

function run(script: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${basename(script)} failed:\n${stdout}${stderr}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  const all = packages();
  const unknown = names.filter((name) => !all.some(({ folder }) => folder === name));
  if (unknown.length > 0) throw new Error(`There is no packages/${unknown.join(', packages/')}`);
  for (const { folder, source, built } of all) {
    if (names.length > 0 && !names.includes(folder)) continue;
    console.log(`Building ${folder} …`);
    buildPackage(source, built);
  }
}
