import { expect, test } from 'vitest';
import { createLoopQueue } from './loop-queue.ts';

/** Longer than what goes in one turn of the event loop. */
function hold(): void {
  const end = performance.now() + 10;
  while (performance.now() < end);
}

test('long work runs alone: the event loop continues in between', async () => {
  const turns = createLoopQueue();
  let rounds = 0;
  const count = () => {
    rounds += 1;
    if (rounds < 1_000) setImmediate(count);
  };
  setImmediate(count);
  const seen = await Promise.all(
    Array.from({ length: 5 }, async () => {
      await turns.next('one');
      hold();
      return rounds;
    }),
  );
  expect(new Set(seen).size).toBe(5);
});

test('a caller with much work waits for its own, and others do not wait for it', async () => {
  const turns = createLoopQueue();
  const order: string[] = [];
  const send = async (who: string) => {
    await turns.next(who);
    hold();
    order.push(who);
  };
  await Promise.all([...Array.from({ length: 20 }, () => send('many')), send('one'), send('another')]);
  expect(order.indexOf('another')).toBeLessThan(5);
  expect(order).toHaveLength(22);
});

test('work of one caller runs in the order of arrival', async () => {
  const turns = createLoopQueue();
  const order: number[] = [];
  const send = async (index: number) => {
    await turns.next('one');
    if (index % 3 === 0) hold();
    order.push(index);
  };
  await Promise.all(Array.from({ length: 20 }, (_, index) => send(index)));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});
