// The result of a benchmark, as a row of a table for people and as JSON for programs.

/** A row of the table. Only `ratio` is meaningful on another machine; there is none without a limit. */
export interface Row {
  name: string;
  unit: string;
  /** Medians over the pairs. */
  ours: number;
  limit?: number;
  /** The ratio of `ours` to the limit measured next to it, over the pairs. */
  ratio?: { median: number; min: number; max: number };
  /** As docs/operations/performance.md explains it. */
  target: string;
}

/** `pairs` are consecutive measurements: ours, then the limit, if there is one. */
export function rowOf(
  head: Pick<Row, 'name' | 'unit' | 'target'>,
  pairs: readonly { ours: number; limit?: number }[],
): Row {
  const row = { ...head, ours: median(pairs.map(({ ours }) => ours)) };
  const limits = pairs.flatMap(({ limit }) => limit ?? []);
  if (limits.length === 0) return row;
  const ratios = pairs.map(({ ours, limit }) => ours / limit!);
  const ratio = { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
  return { ...row, limit: median(limits), ratio };
}

/** A row of one number of each sample. */
export function rowOfSamples<Sample>(
  head: Pick<Row, 'name' | 'unit' | 'target'>,
  pairs: readonly { ours: Sample; limit: Sample }[],
  of: (sample: Sample) => number,
): Row {
  return rowOf(
    head,
    pairs.map(({ ours, limit }) => ({ ours: of(ours), limit: of(limit) })),
  );
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The smallest of the values that this share of them does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? Number.NaN;
}

/** In the form of Markdown, which is also readable in a terminal. */
export function formatTable(rows: readonly Row[]): string {
  const cells = rows.map(({ name, unit, ours, limit, ratio, target }) => [
    name,
    `${formatNumber(ours)} ${unit}`,
    limit === undefined ? '–' : `${formatNumber(limit)} ${unit}`,
    ratio ? `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})` : '–',
    target,
  ]);
  return formatCells([['name', 'ours', 'limit', 'ratio', 'target'], ...cells]);
}

/** The first line is the head. */
export function formatCells(table: readonly (readonly string[])[]): string {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)));
  const [head, ...body] = table.map((line) => `| ${line.map((cell, at) => cell.padEnd(widths[at]!)).join(' | ')} |`);
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [head, rule, ...body].join('\n');
}

export function formatNumber(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(value >= 10 ? 1 : 2);
}
