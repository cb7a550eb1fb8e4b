/**
 * Builds the folder that is published: JavaScript, declarations and a package.json of its own.
 *
 *     npm run build -w @signalbox/client && npm publish packages/client/dist
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('..', import.meta.url));
const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));

/** Builds into `folder`, which is emptied first. Throws with the compiler's messages where it fails. */
export function build(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  const args = [join(typescript, 'bin/tsc'), '-p', join(source, 'tsconfig.build.json'), '--outDir', folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tsc failed:\n${stdout}${stderr}`);

  // tsc rewrites the imports of the JavaScript alone; older compilers don't find a declaration by `./x.ts`.
  for (const file of globSync(join(folder, '**/*.d.ts'))) {
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/((?:from |import\()'\.{1,2}\/[^']+)\.ts'/g, "$1.js'"));
  }

  const { name, version, description, license, type, engines } = JSON.parse(
    readFileSync(join(source, 'package.json'), 'utf8'),
  ) as Record<string, unknown>;
  const exports = { '.': { types: './index.d.ts', default: './index.js' } };
  const manifest = { name, version, description, license, type, engines, sideEffects: false, exports };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(source, 'README.md'), join(folder, 'README.md'));
  copyFileSync(join(source, '../../LICENSE'), join(folder, 'LICENSE'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) build(join(source, 'dist'));
