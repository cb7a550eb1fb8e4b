import { expect, test } from 'vitest';
import { createFairShare, type Release } from './fair-share.ts';

const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Whether each has entered by now. */
async function entered(promises: Promise<unknown>[]): Promise<boolean[]> {
  const states = promises.map(() => false);
  for (const [index, promise] of promises.entries())
    void promise.then(() => {
      states[index] = true;
    });
  await nextIteration();
  return states;
}

test('no more is taken than there is, and no organization has more than its part', async () => {
  const share = createFairShare({ max: 100, maxOfOrganization: 60 });
  const first = share.take('a', 40);
  const second = share.take('a', 30);
  const other = share.take('b', 50);
  const third = share.take('c', 20);
  expect(await entered([first, second, other, third])).toEqual([true, false, true, false]);
  expect(share.waiting).toBe(2);
  (await first)!();
  expect(await entered([second, third])).toEqual([true, true]);
  expect(share.waiting).toBe(0);
});

test('an organization at its limit does not keep another waiting', async () => {
  const share = createFairShare({ max: 100, maxOfOrganization: 50 });
  await share.take('a', 50);
  const waits = share.take('a', 10);
  const other = share.take('b', 40);
  expect(await entered([waits, other])).toEqual([false, true]);
});

test('a large one is not overtaken forever by small ones', async () => {
  const share = createFairShare({ max: 100 });
  const release = await share.take('a', 60);
  const large = share.take('b', 80);
  const small = share.take('c', 10);
  expect(await entered([large, small])).toEqual([false, false]);
  release!();
  expect(await entered([large, small])).toEqual([true, true]);
});

test('organizations take turns, however many callers of one wait', async () => {
  const share = createFairShare({ max: 2 });
  const releases: Release[] = [];
  const order: string[] = [];
  const enter = (name: string) =>
    share.take(name).then((release) => {
      order.push(name);
      releases.push(release!);
    });
  for (const name of ['a', 'a', 'a', 'a', 'a', 'b', 'b', 'c']) void enter(name);
  await nextIteration();
  expect(order).toEqual(['a', 'a']);
  for (let left = 6; left > 0; left--) {
    releases.shift()!();
    await nextIteration();
  }
  expect(order).toEqual(['a', 'a', 'a', 'b', 'c', 'a', 'b', 'a']);
});

test('all that fit enter at once, also several of one organization', async () => {
  const share = createFairShare({ max: 100 });
  const release = await share.take('a', 100);
  const waits = [1, 2, 3].map(() => share.take('b', 20));
  expect(await entered(waits)).toEqual([false, false, false]);
  release!();
  expect(await entered(waits)).toEqual([true, true, true]);
});

test('one that is aborted while it waits leaves the line, and those behind it enter', async () => {
  const share = createFairShare({ max: 100 });
  await share.take('a', 60);
  const abort = new AbortController();
  const large = share.take('b', 80, abort.signal);
  const small = share.take('c', 10);
  abort.abort(new Error('over'));
  expect(await large).toBeUndefined();
  expect(await entered([small])).toEqual([true]);
  expect(await share.take('d', 1, abort.signal)).toBeUndefined();
});

test('one that asks for more than its organization may have enters alone', async () => {
  const share = createFairShare({ max: 100, maxOfOrganization: 50 });
  const first = share.take('a', 500);
  const second = share.take('a', 1);
  expect(await entered([first, second])).toEqual([true, false]);
});

test('what is taken at once or not at all never overtakes what waits', async () => {
  const share = createFairShare({ max: 100, maxOfOrganization: 60 });
  const release = share.tryTake('a', 60)!;
  expect(share.tryTake('a', 1)).toBeUndefined();
  const waits = share.take('b', 50);
  expect(share.tryTake('c', 10)).toBeUndefined();
  release();
  expect(await entered([waits])).toEqual([true]);
  expect(share.tryTake('c', 10)).toBeDefined();
});
