// The table of `--against`.
import { formatCells, formatNumber, median } from '../support/table.ts';
import { AT_A_TIME, type Sample, type Target } from './measure.ts';

/** What one program did in all rounds. */
export interface Run {
  version: string;
  target: Target;
  samples: Sample[];
  /** Without it the program could not be started: `problem` says why. */
  url?: string;
  problem?: string;
}

/** Medians over the rounds; failures are all together. */
export function formatRuns(runs: readonly Run[]): string {
  const rates = AT_A_TIME.map((atATime) => `a second, ${atATime} at a time`);
  return formatCells([
    ['program', 'version', 'first token, p50', ...rates, 'failed', 'on disk'],
    ...runs.map(({ version, target: { title, keeps }, samples, problem }) => {
      if (problem !== undefined)
        return [title, version, '–', ...AT_A_TIME.map(() => '–'), '–', `not started: ${problem}`];
      const firstTokens = samples.flatMap(({ firstToken }) => firstToken ?? []);
      return [
        title,
        version,
        firstTokens.length > 0 ? `${formatNumber(median(firstTokens))} ms` : '–',
        ...AT_A_TIME.map((_, at) => formatNumber(median(samples.map(({ perSecond }) => perSecond[at]!)))),
        String(samples.reduce((sum, { failed }) => sum + failed, 0)),
        keeps,
      ];
    }),
  ]);
}
