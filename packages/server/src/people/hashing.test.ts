import { expect, test } from 'vitest';
import { askedCosts } from '../../test/support/cheap-hashes.ts';
import { createQueue, hashPassword, verifyPassword } from './hashing.ts';

test('few run at once, some wait in order of arrival, and the rest are refused at once', async () => {
  const queued = createQueue(2, 2);
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const work = (name: string) =>
    queued(() => {
      begun.push(name);
      const end = Promise.withResolvers<string>();
      ends.set(name, end);
      return end.promise;
    });
  const [a, b, c, d] = [work('a'), work('b'), work('c'), work('d')];
  await expect(work('e')).rejects.toMatchObject({ status: 503, retryAfterSeconds: 2 });
  expect(begun).toEqual(['a', 'b']);
  ends.get('b')!.reject(new Error('not this one'));
  await expect(b).rejects.toThrow('not this one');
  expect(begun).toEqual(['a', 'b', 'c']);
  ends.get('a')!.resolve('A');
  ends.get('c')!.resolve('C');
  expect([await a, await c]).toEqual(['A', 'C']);
  ends.get('d')!.resolve('D');
  expect(await d).toBe('D');
  // The places are free again.
  const f = work('f');
  ends.get('f')!.resolve('F');
  expect(await f).toBe('F');
});

test('a hash and each check of a password cost 32 MiB of memory and as much work', async () => {
  const hash = await hashPassword('seven small red boats');
  expect(await verifyPassword({ hash, password: 'seven small red boats' })).toBe(true);
  expect(await verifyPassword({ hash, password: 'seven small red goats' })).toBe(false);
  // 128 · N · r bytes.
  expect(askedCosts.map(({ N, r, p }) => ({ N, r, p }))).toEqual(Array(3).fill({ N: 16_384, r: 16, p: 1 }));
});
