import { expect, test } from 'vitest';
import { gather } from './gather.ts';

test('calls of one turn of the event loop, and those made while a group runs, share a group', async () => {
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

test('a failed group does not fail the next one', async () => {
  const call = gather(async (inputs: readonly number[]) => {
    if (inputs.includes(1)) throw new Error('no');
    return inputs;
  });
  await expect(call(1)).rejects.toThrow('no');
  expect(await call(2)).toBe(2);
});

test('a call can fail without the others of its group', async () => {
  const call = gather(async (inputs: readonly number[]) =>
    inputs.map((n) => (n === 1 ? Promise.reject<number>(new Error('no')) : n)),
  );
  expect(await Promise.allSettled([call(1), call(2)])).toMatchObject([{ status: 'rejected' }, { value: 2 }]);
});

test('a concurrent group does not wait for an earlier one', async () => {
  const gates: PromiseWithResolvers<void>[] = [];
  const call = gather(
    async (inputs: readonly number[]) => {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      return inputs;
    },
    { isConcurrent: true },
  );
  const first = call(1);
  await new Promise((resolve) => setImmediate(resolve));
  const second = [call(2), call(3)];
  await new Promise((resolve) => setImmediate(resolve));
  expect(gates).toHaveLength(2);
  gates[1]!.resolve();
  expect(await Promise.all(second)).toEqual([2, 3]);
  gates[0]!.resolve();
  expect(await first).toBe(1);
});
