import { expect, test } from 'vitest';
import { gather } from './gather.ts';

test('calls of one turn of the event loop, and those made while a group runs, travel together', async () => {
  const groups: number[][] = [];
  const gate = Promise.withResolvers<void>();
  const call = gather(async (inputs: readonly number[]) => {
    groups.push([...inputs]);
    if (groups.length === 1) await gate.promise;
    return inputs.map((n) => n * 2);
  });
  const first = [call(1), call(2)];
  await new Promise((resolve) => setImmediate(resolve));
  const second = [call(3), call(4)];
  gate.resolve();
  expect(await Promise.all([...first, ...second])).toEqual([2, 4, 6, 8]);
  expect(groups).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

test('a failure is that of its own group alone', async () => {
  const call = gather(async (inputs: readonly number[]) => {
    if (inputs.includes(1)) throw new Error('no');
    return inputs;
  });
  await expect(call(1)).rejects.toThrow('no');
  expect(await call(2)).toBe(2);
});
