// Latencies as counts in fixed buckets, so that histograms of any intervals and nodes can be added.
//
// Four buckets double the latency: bucket 0 is up to a millisecond, bucket i up to 2^(i/4) ms. A percentile is therefore right to within
// a fifth. A stored histogram is a list of its non-empty buckets: `bucket * 2^40 + count`, which is exact in a JavaScript number.

/** Counts by bucket. */
export type Histogram = Map<number, number>;

const PER_DOUBLING = 4;
// About 13 hours: longer than any turn.
const LAST_BUCKET = 102;
/** In SQL: `>> 40` is the bucket, `& 1099511627775` the count. */
const COUNTS = 2 ** 40;

export function bucketOf(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(LAST_BUCKET, Math.ceil(Math.log2(ms) * PER_DOUBLING - 1e-9));
}

export function observe(histogram: Histogram, ms: number): void {
  const bucket = bucketOf(ms);
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1);
}

/** As it is stored. */
export function pack(histogram: Histogram): number[] {
  return [...histogram].map(([bucket, count]) => bucket * COUNTS + count);
}

/** Adds a stored histogram. */
export function addPacked(histogram: Histogram, packed: readonly number[]): void {
  for (const element of packed) {
    const bucket = Math.floor(element / COUNTS);
    histogram.set(bucket, (histogram.get(bucket) ?? 0) + (element % COUNTS));
  }
}

/** In milliseconds, interpolated within its bucket; null if nothing was observed. `share`: 0.5 is the median. */
export function percentile(histogram: Histogram, share: number): number | null {
  const buckets = [...histogram].toSorted(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  const rank = share * total;
  for (const [bucket, count] of buckets) {
    if (below + count >= rank) {
      const within = Math.max(0, rank - below) / count;
      return Math.round(2 ** ((bucket - 1 + within) / PER_DOUBLING));
    }
    below += count;
  }
  return Math.round(2 ** (buckets.at(-1)![0] / PER_DOUBLING));
}
