import { expect, test } from 'vitest';
import { coalesced } from './coalesced.ts';

test('calls during a run share one more run, and no two runs overlap', async () => {
  const gates: PromiseWithResolvers<void>[] = [];
  let open = 0;
  const act = coalesced(async () => {
    open += 1;
    expect(open).toBe(1);
    const gate = Promise.withResolvers<void>();
    gates.push(gate);
    await gate.promise.finally(() => {
      open -= 1;
    });
  });

  const first = act();
  const [second, third] = [act(), act()];
  expect(gates).toHaveLength(1);
  gates[0]!.reject(new Error('failed'));
  await expect(first).rejects.toThrow('failed');
  while (gates.length < 2) await new Promise<void>((resolve) => setImmediate(resolve));
  const fourth = act();
  gates[1]!.resolve();
  await Promise.all([second, third]);
  while (gates.length < 3) await new Promise<void>((resolve) => setImmediate(resolve));
  gates[2]!.resolve();
  await fourth;
  expect(gates).toHaveLength(3);
});
