import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addPacked, bucketOf, type Histogram, observe, pack, percentile } from './histogram.ts';

function histogramOf(values: readonly number[]): Histogram {
  const histogram: Histogram = new Map();
  for (const value of values) observe(histogram, value);
  return histogram;
}

const latency = fc.integer({ min: 1, max: 10_000_000 });

test('a percentile is right to within a fifth, whatever the latencies', () => {
  fc.assert(
    fc.property(fc.array(latency, { minLength: 1, maxLength: 300 }), fc.constantFrom(0.5, 0.95), (values, share) => {
      const exact = values.toSorted((a, b) => a - b)[Math.ceil(share * values.length) - 1]!;
      const found = percentile(histogramOf(values), share)!;
      expect(found).toBeGreaterThanOrEqual(exact / 1.2 - 1);
      expect(found).toBeLessThanOrEqual(exact * 1.2 + 1);
    }),
  );
});

test('histograms that were stored apart add up to the histogram of everything', () => {
  fc.assert(
    fc.property(fc.array(latency), fc.array(latency), (some, others) => {
      const added: Histogram = new Map();
      addPacked(added, pack(histogramOf(some)));
      addPacked(added, pack(histogramOf(others)));
      expect(added).toEqual(histogramOf([...some, ...others]));
    }),
  );
});

test('nothing has no percentile, and a latency of 0 or of days is counted', () => {
  expect(percentile(new Map(), 0.5)).toBeNull();
  expect(percentile(histogramOf([0]), 0.5)).toBeLessThanOrEqual(1);
  expect(bucketOf(-1)).toBe(0);
  expect(bucketOf(Number.NaN)).toBe(0);
  expect(percentile(histogramOf([1e9]), 0.95)).toBeGreaterThan(3600_000);
});
