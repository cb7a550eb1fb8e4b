import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isSuitable, NEWER_NODE, OLDEST_NODE } from './newer-node.ts';

const manifest = (path: string) => JSON.parse(readFileSync(new URL(`${path}/package.json`, import.meta.url), 'utf8'));

test('the oldest Node is the one that the service declares, and the newer one that of the workspace', () => {
  expect(manifest('../../server').engines.node).toBe(`>=${OLDEST_NODE}`);
  const { optionalDependencies } = manifest('../../..') as { optionalDependencies: Record<string, string> };
  const pinned = Object.entries(optionalDependencies).map(([name, version]) => `${name}@${version}`);
  expect(Object.values(NEWER_NODE).toSorted()).toEqual(pinned.toSorted());
});

test.each([
  ['20.20.2', false],
  ['22.18.9', false],
  ['22.19.0', true],
  ['24.0.0', true],
  ['26.10.0', true],
])('whether Node %s can run the command: %s', (version, expected) => {
  expect(isSuitable(version)).toBe(expected);
});

test('a global command takes no settings of npm from the folder in which it is run', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-folder-'));
  try {
    const ran = join(folder, 'ran');
    writeFileSync(join(folder, 'package.json'), '{}');
    writeFileSync(join(folder, '.npmrc'), `script-shell=${join(folder, 'shell.sh')}\n`);
    writeFileSync(join(folder, 'shell.sh'), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
    writeFileSync(join(folder, 'main.mjs'), "console.log('the command')");
    const module = new URL('./newer-node.ts', import.meta.url).href;
    const preload = new URL('./with-launcher.ts', import.meta.url).href;
    const program = `import { runOnNewerNode } from '${module}';
      await runOnNewerNode('${join(folder, 'main.mjs')}', [], new URL('${preload}'));`;
    const own = Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith('npm_'));
    const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: folder,
      env: Object.fromEntries(own),
      encoding: 'utf8',
    });
    expect(existsSync(ran), stderr).toBe(false);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
