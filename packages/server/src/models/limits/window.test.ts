import { expect, test } from 'vitest';
import { correct, freeAt, latestTurn, type Rate, SLICE_MS, type Slice, takeInOrder } from './window.ts';

const START = 1_700_000_000_000;
const requests = (requestsPerMinute: number): Rate => ({ requestsPerMinute, tokensPerMinute: null });
const tokens = (tokensPerMinute: number): Rate => ({ requestsPerMinute: null, tokensPerMinute });

/** Makes calls of these tokens in order as early as each may be made: when, in ms from the first. */
function times(rate: Rate, calls: readonly number[], offsetMs = 0): number[] {
  let [nowMs, taken] = [START + offsetMs, [] as Slice[]];
  return calls.map((one) => {
    nowMs = freeAt(rate, taken, one, nowMs);
    const made = takeInOrder(rate, taken, [one], nowMs);
    expect(made.count).toBe(1);
    taken = made.taken;
    return nowMs - START - offsetMs;
  });
}

function mostInAMinute(made: readonly number[], of: readonly number[]): number {
  return Math.max(
    ...made.map((from) =>
      of.reduce((sum, one, i) => sum + (made[i]! >= from && made[i]! < from + 60_000 ? one : 0), 0),
    ),
  );
}

test.each([1, 7, 60, 250])(
  'no minute has more than %i requests, wherever it begins, and none waits longer than needed',
  (limit) => {
    for (const offsetMs of [0, 1, SLICE_MS - 1, 1_337]) {
      const calls = Array.from({ length: limit * 3 + 1 }, () => 0);
      const made = times(requests(limit), calls, offsetMs);
      expect(
        mostInAMinute(
          made,
          calls.map(() => 1),
        ),
      ).toBe(limit);
      expect(made.at(-1)).toBeLessThanOrEqual(3 * (60_000 + SLICE_MS));
    }
  },
);

test('no minute has more tokens than the limit, and a call that alone takes more is made while no other counts', () => {
  const calls = [40, 40, 40, 500, 10, 100, 1];
  const made = times(tokens(100), calls);
  expect(made.map((ms) => Math.floor(ms / 60_000))).toEqual([0, 0, 1, 2, 3, 4, 5]);
  expect(
    mostInAMinute(
      made.filter((_, i) => calls[i] !== 500),
      calls.filter((one) => one !== 500),
    ),
  ).toBe(100);
});

test('the first that waits is not passed by a smaller one behind it', () => {
  expect(takeInOrder(tokens(100), [[START, 1, 60]], [50, 10], START).count).toBe(0);
  expect(takeInOrder(tokens(100), [[START, 1, 60]], [40, 10], START).count).toBe(1);
});

test('what a call has used replaces the estimate, also after the minute in which it began', () => {
  const taken: Slice[] = [[START, 1, 60]];
  expect(correct(taken, { startMs: START, moreTokens: -50 }, START + 5_000)).toEqual([[START, 1, 10]]);
  expect(correct(taken, { startMs: START, moreTokens: 25 }, START + 5_000)).toEqual([[START, 1, 85]]);
  expect(correct(taken, { startMs: START, moreTokens: -99 }, START + 5_000)).toEqual([[START, 1, 0]]);
  expect(correct(taken, { startMs: START, moreTokens: 25 }, START + 70_000)).toEqual([[START + 70_000, 0, 25]]);
  expect(correct(taken, { startMs: START, moreTokens: -25 }, START + 70_000)).toEqual([]);
  expect(taken).toEqual([[START, 1, 60]]);
});

test('a call is made by the time that it is shown', () => {
  const [calls, rate] = [Array.from({ length: 200 }, () => 0), requests(60)];
  const { taken } = takeInOrder(rate, [], calls, START);
  const made = times(rate, calls);
  for (const [index, ms] of made.slice(60).entries()) {
    const latestMs = latestTurn(rate, taken, { requests: index, tokens: 0 }, START) - START;
    expect(latestMs).toBeGreaterThanOrEqual(ms);
    expect(latestMs - ms).toBeLessThan(10_000);
  }
});
