import { expect, test } from 'vitest';
import { createByteBudget } from './byte-budget.ts';

/** Whether each has entered by now. */
async function entered(promises: Promise<unknown>[]): Promise<boolean[]> {
  const states = promises.map(() => false);
  for (const [index, promise] of promises.entries())
    void promise.then(() => {
      states[index] = true;
    });
  await new Promise((resolve) => setImmediate(resolve));
  return states;
}

test('no more bytes are taken than the budget has, and no organization has more than its part', async () => {
  const budget = createByteBudget(100, 60);
  const first = budget.take('a', 40);
  const second = budget.take('a', 30);
  const other = budget.take('b', 50);
  const third = budget.take('c', 20);
  expect(await entered([first, second, other, third])).toEqual([true, false, true, false]);
  (await first)!();
  expect(await entered([second, third])).toEqual([true, true]);
});

test('an organization at its limit does not keep another waiting', async () => {
  const budget = createByteBudget(100, 50);
  await budget.take('a', 50);
  const waits = budget.take('a', 10);
  const other = budget.take('b', 40);
  expect(await entered([waits, other])).toEqual([false, true]);
});

test('a large one is not overtaken forever by small ones', async () => {
  const budget = createByteBudget(100, 100);
  const leave = await budget.take('a', 60);
  const large = budget.take('b', 80);
  const small = budget.take('c', 10);
  expect(await entered([large, small])).toEqual([false, false]);
  leave!();
  expect(await entered([large, small])).toEqual([true, true]);
});

test('organizations take turns', async () => {
  const budget = createByteBudget(10, 10);
  let leave = await budget.take('a', 10);
  const order: string[] = [];
  for (const name of ['a', 'a', 'b', 'b', 'c']) {
    void budget.take(name, 10).then((entered) => {
      order.push(name);
      leave = entered;
    });
  }
  for (let left = 5; left > 0; left--) {
    leave!();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(order).toEqual(['a', 'b', 'c', 'a', 'b']);
});

test('all that fit enter at once', async () => {
  const budget = createByteBudget(100, 100);
  const leave = await budget.take('a', 100);
  const waits = [1, 2, 3].map(() => budget.take('b', 20));
  expect(await entered(waits)).toEqual([false, false, false]);
  leave!();
  expect(await entered(waits)).toEqual([true, true, true]);
});

test('one that is aborted while it waits leaves the line, and those behind it enter', async () => {
  const budget = createByteBudget(100, 100);
  await budget.take('a', 60);
  const abort = new AbortController();
  const large = budget.take('b', 80, abort.signal);
  const small = budget.take('c', 10);
  abort.abort(new Error('over'));
  expect(await large).toBeUndefined();
  expect(await entered([small])).toEqual([true]);
  expect(await budget.take('d', 1, abort.signal)).toBeUndefined();
});

test('one that asks for more than its organization may have enters alone', async () => {
  const budget = createByteBudget(100, 50);
  const first = budget.take('a', 500);
  const second = budget.take('a', 1);
  expect(await entered([first, second])).toEqual([true, false]);
});
