/**
 * Builds the folder of a package that is published: JavaScript, declarations and a package.json of its own.
 *
 *     npm run build -w @signalbox/client && npm publish packages/client/dist
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));

/** `source` is the package's folder; `folder` is emptied first. Throws with the compiler's messages if it fails. */
export function buildPackage(source: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  const args = [join(typescript, 'bin/tsc'), '-p', join(source, 'tsconfig.build.json'), '--outDir', folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tsc failed:\n${stdout}${stderr}`);

  // tsc rewrites the imports only in JavaScript, and older compilers can't resolve `./x.ts` in a declaration.
  for (const file of globSync(join(folder, '**/*.d.ts'))) {
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/((?:from |import\()'\.{1,2}\/[^']+)\.ts'/g, "$1.js'"));
  }

  // Leave out what only the workspace needs: scripts, and dependencies that are compiled in or only for tests.
  const { scripts, devDependencies, exports, ...kept } = JSON.parse(
    readFileSync(join(source, 'package.json'), 'utf8'),
  ) as Record<string, unknown>;
  const manifest = {
    ...kept,
    sideEffects: false,
    exports: Object.fromEntries(
      Object.entries(exports as Record<string, string>).map(([path, file]) => {
        const built = file.replace('./src/', './').replace(/\.ts$/, '');
        return [path, { types: `${built}.d.ts`, default: `${built}.js` }];
      }),
    ),
    types: './index.d.ts',
    files: ['**/*.js', '**/*.d.ts'],
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(source, 'README.md'), join(folder, 'README.md'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildPackage(process.cwd(), join(process.cwd(), 'dist'));
