import { beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { paced } from './paced.ts';

let clock: ManualClock;
let tookMs: number;
let isFailing: boolean;
let search: () => Promise<string | undefined>;

beforeEach(() => {
  clock = createManualClock();
  isFailing = false;
  search = paced(clock, async () => {
    clock.advance(tookMs);
    if (isFailing) throw new Error('failed');
    return 'found';
  });
});

test('a search that took 100 ms is not repeated for 5 s', async () => {
  tookMs = 100;
  expect(await search()).toBe('found');
  clock.advance(4_999);
  expect(await search()).toBeUndefined();
  clock.advance(1);
  expect(await search()).toBe('found');
});

test('a search is repeated after 15 s, however long it took', async () => {
  tookMs = 10_000;
  expect(await search()).toBe('found');
  clock.advance(14_999);
  expect(await search()).toBeUndefined();
  clock.advance(1);
  expect(await search()).toBe('found');
});

test('a search that failed is repeated by the next call', async () => {
  tookMs = 10_000;
  isFailing = true;
  await expect(search()).rejects.toThrow('failed');
  isFailing = false;
  expect(await search()).toBe('found');
});

test('a search that takes no time is never skipped', async () => {
  tookMs = 0;
  expect(await search()).toBe('found');
  expect(await search()).toBe('found');
});
