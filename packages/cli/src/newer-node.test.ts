import { readFileSync } from 'node:fs';
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
