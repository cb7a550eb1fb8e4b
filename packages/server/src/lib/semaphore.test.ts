import { expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

test('no more run at once than allowed, the others follow in order, and a failure frees its place', async () => {
  const semaphore = new Semaphore(2);
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const run = (name: string) =>
    semaphore.run(() => {
      begun.push(name);
      const end = Promise.withResolvers<string>();
      ends.set(name, end);
      return end.promise;
    });
  const [a, b, c, d] = [run('a'), run('b'), run('c'), run('d')];
  await settle();
  expect(begun).toEqual(['a', 'b']);
  expect(semaphore.waitingCount).toBe(2);
  ends.get('b')!.reject(new Error('not this one'));
  await expect(b).rejects.toThrow('not this one');
  await settle();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const name of ['a', 'c']) ends.get(name)!.resolve(name);
  expect(await Promise.all([a, c])).toEqual(['a', 'c']);
  await settle();
  ends.get('d')!.resolve('d');
  expect(await d).toBe('d');
  expect(semaphore.waitingCount).toBe(0);
});

test('a newcomer does not overtake those that wait', async () => {
  const semaphore = new Semaphore(1);
  const entered: string[] = [];
  await semaphore.acquire();
  void semaphore.acquire().then(() => entered.push('waited'));
  semaphore.release();
  void semaphore.acquire().then(() => entered.push('newcomer'));
  await settle();
  expect(entered).toEqual(['waited']);
  semaphore.release();
  await settle();
  expect(entered).toEqual(['waited', 'newcomer']);
});
