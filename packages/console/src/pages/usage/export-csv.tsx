import type { UsageReport } from '@signalbox/client';
import { Download } from 'lucide-react';
import { Button } from '../../ui/button.tsx';
import { saveCsv } from './csv.ts';
import { foundIn } from './groupings.ts';

const fields = [
  'costUsd',
  'steps',
  'unpricedSteps',
  'inputTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'outputTokens',
  'webSearches',
] as const;

/** The groups that are found, or all of them. */
export function ExportCsv({
  report,
  q,
  nameOf,
}: {
  report: UsageReport | undefined;
  q: string;
  nameOf: (group: string) => string;
}) {
  function save({ groupBy, data, other, from, to }: UsageReport) {
    const rest = other && q === '' ? [{ group: 'others', ...other }] : [];
    const last = new Date(Date.parse(to) - 1).toISOString().slice(0, 10);
    saveCsv(
      `usage-by-${groupBy}-${from.slice(0, 10)}-to-${last}.csv`,
      [groupBy, 'name', ...fields],
      [...foundIn(data, q, nameOf), ...rest].map((row) => [
        row.group,
        groupBy === 'agent' || groupBy === 'apiKey' ? nameOf(row.group) : '',
        ...fields.map((field) => row[field] ?? ''),
      ]),
    );
  }
  return (
    <Button disabled={!report || report.data.length === 0} onClick={() => report && save(report)}>
      <Download aria-hidden="true" />
      Export CSV
    </Button>
  );
}
