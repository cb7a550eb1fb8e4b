import { beforeEach, expect, test } from 'vitest';
import { paced } from './paced.ts';

let nowMs: number;
let tookMs: number;
let result: string | Error;
let search: () => Promise<string | undefined>;

beforeEach(() => {
  nowMs = 0;
  result = 'found';
  const act = async () => {
    nowMs += tookMs;
    if (result instanceof Error) throw result;
    return result;
  };
  search = paced({ elapsedMs: () => nowMs }, act, { again: (found) => found === 'part' });
});

test('a search that took 100 ms is not repeated for 2 s', async () => {
  tookMs = 100;
  expect(await search()).toBe('found');
  nowMs += 1_999;
  expect(await search()).toBeUndefined();
  nowMs += 1;
  expect(await search()).toBe('found');
});

test('a search is repeated after 15 s, however long it took', async () => {
  tookMs = 10_000;
  expect(await search()).toBe('found');
  nowMs += 14_999;
  expect(await search()).toBeUndefined();
  nowMs += 1;
  expect(await search()).toBe('found');
});

test('a search that failed, or that has more to find, is repeated by the next call', async () => {
  tookMs = 10_000;
  result = new Error('failed');
  await expect(search()).rejects.toThrow('failed');
  result = 'part';
  expect(await search()).toBe('part');
  result = 'found';
  expect(await search()).toBe('found');
  expect(await search()).toBeUndefined();
});
