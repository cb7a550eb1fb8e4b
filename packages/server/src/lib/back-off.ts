/** The wait after the `failures`-th failure in a row (from 1): `firstMs`, doubled after each further failure, at most `maxMs`. */
export function exponentialMs(failures: number, firstMs: number, maxMs = Number.POSITIVE_INFINITY): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs);
}
