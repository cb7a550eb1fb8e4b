import type { UsageReport } from '@signalbox/client';
import { oneOf, textIn } from '../../lib/search-params.ts';

export const periods = ['7', '30', '90', '365', 'month', 'last-month', 'custom'] as const;
export type Period = (typeof periods)[number];

/** What is reported, by default the last 30 days, by day. The environment is that of the frame. */
export interface UsageSearch {
  period?: Period;
  groupBy?: UsageReport['groupBy'];
  /** The first and last day of a custom period: UTC days, both included. */
  from?: string;
  to?: string;
  /** Whether what drafts used is left out, or the only thing reported; without it, it is included. */
  drafts?: 'none' | 'only';
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
    ...oneOf(search, 'drafts', ['none', 'only'] as const),
    ...textIn(search, 'from', dayPattern),
    ...textIn(search, 'to', dayPattern),
    ...textIn(search, 'q'),
  };
}
