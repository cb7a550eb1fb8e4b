// The package as users install it: built, packed, and used in an empty folder by the program of its README.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildPackage } from '../../../scripts/build-package.ts';

const source = fileURLToPath(new URL('..', import.meta.url));
const installed = fileURLToPath(new URL('../../../node_modules', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sb-package-'));
const dist = join(temporary, 'dist');
const app = join(temporary, 'app');
const own = join(app, 'node_modules/@signalbox/embedded-postgres');
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

const [example = '', ...others] = [
  ...readFileSync(join(source, 'README.md'), 'utf8').matchAll(/```ts\n(.*?)```/gs),
].map((match) => match[1]!);

function run(command: string, args: string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  expect(error).toBeUndefined();
  expect(status, `${command} ${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** The npm that runs the tests: a search by name may find another one. */
const npm = (args: string[], cwd: string) =>
  process.env.npm_execpath ? run(process.execPath, [process.env.npm_execpath, ...args], cwd) : run('npm', args, cwd);

beforeAll(() => {
  buildPackage(source, dist);
  const packed = JSON.parse(npm(['pack', '--json', '--pack-destination', temporary], dist)) as unknown;
  const [{ filename }] = Object.values(packed as object) as [{ filename: string }];
  mkdirSync(own, { recursive: true });
  run('tar', ['-xzf', join(temporary, filename), '--strip-components=1', '-C', own], temporary);
  // What npm would download.
  for (const name of ['pg', '@embedded-postgres']) symlinkSync(join(installed, name), join(app, 'node_modules', name));
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }');
});

test('the program of the README runs, and finds its data the second time', () => {
  writeFileSync(join(app, 'main.ts'), example);
  expect(run(process.execPath, ['main.ts'], app)).toBe('{ starts: 1 }\n');
  expect(run(process.execPath, ['main.ts'], app)).toBe('{ starts: 2 }\n');
});

test('its type declarations are complete: they compile in strict mode with only Node’s types', () => {
  const program = `import { startPostgres, PostgresError } from '@signalbox/embedded-postgres';
${others.join('\n')}
const url: string = postgres.url;
const tcpUrl: string | undefined = postgres.tcpUrl;
const message = (error: unknown) => (error instanceof PostgresError ? error.message : url + tcpUrl);
// @ts-expect-error: the directory is missing
startPostgres({ port: 0 });
// @ts-expect-error: no such option
startTemporaryPostgres({ directory: 'x' });
export { message };
`;
  writeFileSync(join(app, 'types.ts'), program);
  mkdirSync(join(app, 'node_modules/@types'), { recursive: true });
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(join(installed, name), join(app, 'node_modules', name));
  const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
  const compilerOptions = { ...strict, target: 'es2022', module: 'nodenext', types: ['node'], noEmit: true };
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
  run(process.execPath, [join(typescript, 'bin/tsc'), '-p', app], app);
});

test('it contains what it needs to run and nothing else', () => {
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as Record<string, object>;
  const { name, dependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(source, 'package.json'), 'utf8'),
  ) as Record<string, object>;
  expect(manifest).toMatchObject({ name, dependencies, optionalDependencies, license: 'Apache-2.0' });
  expect(Object.keys(manifest).filter((field) => /devDependencies|scripts/.test(field))).toEqual([]);
  const files = globSync('*', { cwd: own });
  expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'index.js', 'index.d.ts']));
  for (const file of globSync(join(own, '**/*.{js,d.ts}'))) {
    expect(readFileSync(file, 'utf8'), file).not.toMatch(/@signalbox\/|from '\..*\.ts'/);
  }
});
