import { expect, test } from 'vitest';
import type { ExportedFile } from '../../lib/files/exported-file.ts';
import { createExports } from './exports.ts';

const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

test('few pages are read at a time, fewer for one organization, and organizations take turns', async () => {
  const exports = createExports();
  const reading: { organization: string; end(): void }[] = [];
  let ended = 0;
  const fileOf = (organization: string): ExportedFile => ({
    contentType: 'text/csv',
    fileName: 'x.csv',
    async *read() {
      try {
        for (;;) {
          const { promise, resolve } = Promise.withResolvers<void>();
          reading.push({ organization, end: resolve });
          await promise;
          yield 'page';
        }
      } finally {
        ended += 1;
      }
    },
  });
  const over = new AbortController();
  const follow = async (organizationId: string) => {
    for await (const _ of exports.responseOf({ organizationId }, fileOf(organizationId)).read(over.signal)) await null;
  };
  const now = () =>
    reading
      .map(({ organization }) => organization)
      .toSorted()
      .join('');
  const all = ['a', 'a', 'a', 'a', 'b'].map(follow);
  await nextIteration();
  expect(now()).toBe('aab');
  all.push(follow('c'), follow('d'));
  await nextIteration();
  expect(now()).toBe('aabc');
  // The turn of the organization that waits since before, and then that of the next.
  reading.shift()!.end();
  await nextIteration();
  expect(now()).toBe('aabc');
  reading.shift()!.end();
  await nextIteration();
  expect(now()).toBe('abcd');
  over.abort(new Error('over'));
  for (let left = 0; left < 10; left += 1) {
    for (const { end } of reading.splice(0)) end();
    await nextIteration();
  }
  await Promise.all(all);
  // One had not begun.
  expect(ended).toBe(6);
});
