import type { UsageReport } from '@signalbox/client';
import { environmentPattern, oneOf, textIn } from '../../search-params.ts';

export const periods = ['7', '30', '90', '365', 'month', 'last-month', 'custom'] as const;
export type Period = (typeof periods)[number];

/** What is reported, by default the last 30 days, by day, for all environments. */
export interface UsageSearch {
  period?: Period;
  groupBy?: UsageReport['groupBy'];
  environment?: string;
  /** Of a custom period: UTC days, the last one included. */
  from?: string;
  to?: string;
  /** Only groups whose name contains it. */
  q?: string;
}

const dayPattern = /^\d{4}-\d\d-\d\d$/;

export function usageSearch(search: Record<string, unknown>): UsageSearch {
  // The router parses digits as a number.
  const period = typeof search.period === 'number' ? String(search.period) : search.period;
  return {
    ...oneOf({ period }, 'period', periods),
    ...oneOf(search, 'groupBy', ['day', 'agent', 'environment', 'model', 'endUser', 'apiKey']),
    ...textIn(search, 'environment', environmentPattern),
    ...textIn(search, 'from', dayPattern),
    ...textIn(search, 'to', dayPattern),
    ...textIn(search, 'q'),
  };
}
