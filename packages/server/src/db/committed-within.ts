/** By how much a row may be committed later than its time or id says: what clocks of nodes may differ, and the longest a statement takes. */
export const COMMITTED_WITHIN_MS = 120_000;
