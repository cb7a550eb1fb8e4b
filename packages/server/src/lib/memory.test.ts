import { totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { createMemory } from './memory.ts';

const MIB = 1024 * 1024;

test('what is read from outside gets at most 256 MiB and a quarter of the memory, and one organization half of that', () => {
  const usable = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  const most = Math.min(256 * MIB, Math.floor(usable / 4));
  const memory = createMemory();
  const [a, b] = ['a', 'b'].map((organization) => memory.tryTake(organization, Math.floor(most / 2)));
  expect([a, b]).not.toContain(undefined);
  expect(['a', 'b', 'c'].map((organization) => memory.tryTake(organization, 2))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  a!();
  expect(memory.tryTake('b', 2)).toBeUndefined();
  expect(memory.tryTake('c', 2)).toBeDefined();
});
