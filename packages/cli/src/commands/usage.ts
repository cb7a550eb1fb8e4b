// `signalbox usage`: tokens, model calls and their cost.
import type { UsageGroup } from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { command } from '../command.ts';
import { type Dollars, printWithDollars } from '../dollars.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { type Column, Table } from '../table.ts';
import { shown } from '../text.ts';

const splittings = ['agent', 'environment', 'model', 'endUser', 'apiKey'] as const;
const groupings = ['day', 'agent', 'environment', 'model', 'endUser', 'apiKey'] as const;

const usage = command({
  name: '',
  summary: 'Show tokens, model calls and cost, by day, agent, environment, model, end user or API key',
  options: {
    from: { type: 'time', about: 'from the UTC day of this time (30 days before --to)' },
    to: { type: 'time', about: 'to the UTC day of this time (now)' },
    'group-by': { type: 'string', value: 'WHAT', choices: groupings, about: 'instead of by day' },
    'split-by': { type: 'string', value: 'WHAT', choices: splittings, about: 'with --json: also divide each day' },
    agent: { type: 'string', value: 'AGENT', about: 'only this agent' },
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    drafts: {
      type: 'string',
      value: 'WHICH',
      choices: ['only', 'none'] as const,
      about: 'only what drafts used, or only the rest',
    },
    csv: { type: 'boolean', about: 'print CSV, for spreadsheets' },
    ...serviceOptions,
  },
  examples: [
    ['usage --group-by model --from 7d', 'what the models of the last week cost'],
    ['usage --group-by apiKey --from 2026-01-01 --to 2026-01-31 --csv > january.csv', 'by key, for a spreadsheet'],
  ],
  needs: ['usage:read'],
  operations: ['getUsage'],
  async run(input) {
    const {
      from,
      to,
      'group-by': groupBy,
      'split-by': splitBy,
      agent: agentId,
      environment,
      drafts,
      csv,
      json,
    } = input.values;
    const draft = drafts && drafts === 'only';
    const client = serviceOf(input);
    const { stdout } = input.terminal;
    const report = await client.usage.get({ from, to, groupBy, splitBy, agentId, environment, draft });
    if (json) return stdout.write(`${JSON.stringify(report)}\n`);
    if (csv) return stdout.write(csvOf(report.data, report.groupBy));
    const names = agentNames(client);
    if (report.groupBy === 'agent') await names.load(report.data.flatMap(({ group }) => group || []));
    const rest = report.other ? [{ ...report.other, group: 'others' }] : [];
    // The report has a row for every day, also for those without use.
    const used = report.data.filter((sum) => numbers.some((name) => sum[name]));
    const rows: UsageGroup[] = [...used, ...rest, { ...report.total, group: 'total' }];
    await printWithDollars(input.terminal, report, (dollars) =>
      new Table(
        stdout,
        columns(report.groupBy, (group) => names.of(group), dollars),
      ).print(rows),
    );
    const { unpricedSteps } = report.total;
    if (unpricedSteps > 0) {
      const calls = unpricedSteps === 1 ? '1 model call is' : `${unpricedSteps} model calls are`;
      await input.terminal.stderr.write(
        `${calls} not in the cost, because the model has no price (SIGNALBOX_PRICES).\n`,
      );
    }
  },
});

export const commands = [usage];

function columns(
  groupBy: (typeof groupings)[number],
  agentName: (id: string) => string,
  { short }: Dollars,
): Column<UsageGroup>[] {
  const count = (value: number) => value.toLocaleString('en-US');
  return [
    {
      header: groupBy === 'endUser' ? 'END USER' : groupBy === 'apiKey' ? 'API KEY' : groupBy.toUpperCase(),
      cell: ({ group, name }) =>
        shown(name ?? (groupBy === 'agent' ? group && agentName(group) : group)) ||
        (groupBy === 'agent' ? 'drafts' : 'none'),
      shrinks: true,
    },
    { header: 'INPUT', cell: ({ inputTokens }) => count(inputTokens), isRight: true },
    { header: 'CACHED', cell: ({ cachedTokens }) => count(cachedTokens), isRight: true, optional: true },
    { header: 'OUTPUT', cell: ({ outputTokens }) => count(outputTokens), isRight: true },
    { header: 'CALLS', cell: ({ steps }) => count(steps), isRight: true, optional: true },
    { header: 'COST', cell: ({ costUsd }) => (costUsd === null ? 'no price' : short(costUsd)), isRight: true },
  ];
}

const numbers = [
  'inputTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'outputTokens',
  'webSearches',
  'steps',
  'unpricedSteps',
  'costUsd',
] as const;

function csvOf(groups: readonly UsageGroup[], groupBy: string): string {
  const rows = groups.map((group) => [group.group, group.name ?? '', ...numbers.map((name) => group[name] ?? '')]);
  return [[groupBy, 'name', ...numbers], ...rows].map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

/** Quoted if needed. A text that a spreadsheet would take for a formula begins with an apostrophe. */
function csvCell(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
