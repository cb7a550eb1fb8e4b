import { oneOf } from '../../lib/search-params.ts';

export const ranges = ['1h', '24h', '7d', '30d'] as const;
export type OverviewRange = (typeof ranges)[number];

/** The range of the figures and charts; by default 24 hours. */
export interface OverviewSearch {
  range?: OverviewRange;
}

export function overviewSearch(search: Record<string, unknown>): OverviewSearch {
  return oneOf(search, 'range', ranges);
}
