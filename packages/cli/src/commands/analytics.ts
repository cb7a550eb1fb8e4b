// `signalbox analytics`: how many sessions and turns there were, how they ended, and how long they took.
import type { AnalyticsGroup, AnalyticsSum } from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { command } from '../command.ts';
import { type Dollars, printWithDollars } from '../dollars.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { type Column, Table } from '../table.ts';
import { shown } from '../text.ts';

const steps = ['minute', 'hour', 'day'] as const;
const groupings = ['agent', 'environment', 'model'] as const;

const analytics = command({
  name: '',
  summary: 'Show sessions, errors, latencies and deliveries over time, or by agent, environment or model',
  options: {
    from: { type: 'time', about: 'from this time (24 hours before --to)' },
    to: { type: 'time', about: 'to this time (now)' },
    step: {
      type: 'string',
      value: 'STEP',
      choices: steps,
      about: 'a line for each of these (the finest of at most 60)',
    },
    'group-by': { type: 'string', value: 'WHAT', choices: groupings, about: 'a line for each of these instead' },
    agent: { type: 'string', value: 'AGENT', about: 'only this agent' },
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    ...serviceOptions,
  },
  examples: [
    ['analytics --from 7d --step day', 'the last week, day by day'],
    ['analytics --group-by agent', 'which agents failed or were slow today'],
  ],
  needs: ['usage:read'],
  operations: ['getAnalytics'],
  async run(input) {
    const { from, to, step, 'group-by': groupBy, agent: agentId, environment, json } = input.values;
    const client = serviceOf(input);
    const { stdout } = input.terminal;
    const report = await client.analytics.get({ from, to, step, groupBy, agentId, environment });
    if (json) return stdout.write(`${JSON.stringify(report)}\n`);
    const total = { ...report.total, name: 'total' };
    if (groupBy === undefined) {
      const points = report.points.map((point) => ({ ...point, name: nameOf(point.at, report.step) }));
      return printWithDollars(input.terminal, report, (dollars) =>
        new Table(stdout, columns(report.step.toUpperCase(), dollars)).print([...points, total]),
      );
    }
    const names = agentNames(client);
    if (groupBy === 'agent') await names.load(report.groups.flatMap(({ group }) => (group === '' ? [] : [group])));
    const nameOfGroup = ({ group }: AnalyticsGroup) => {
      if (group === '') return `no ${groupBy}`;
      return groupBy === 'agent' ? names.of(group) : group;
    };
    const groups = report.groups.map((group) => ({ ...group, name: nameOfGroup(group) }));
    await printWithDollars(input.terminal, report, (dollars) =>
      new Table(stdout, columns(groupBy.toUpperCase(), dollars)).print([...groups, total]),
    );
  },
});

export const commands = [analytics];

function columns(header: string, { short }: Dollars): Column<AnalyticsSum & { name: string }>[] {
  const count = (value: number) => value.toLocaleString('en-US');
  return [
    { header, cell: ({ name }) => shown(name), shrinks: true },
    { header: 'SESSIONS', cell: ({ sessions }) => count(sessions.opened), isRight: true },
    { header: 'TURNS', cell: ({ turns }) => count(turns.ended), isRight: true },
    { header: 'FAILED', cell: ({ turns }) => count(turns.failed), isRight: true },
    { header: 'FIRST TOKEN', cell: ({ firstToken }) => secondsOf(firstToken), isRight: true },
    { header: 'TURN', cell: ({ turnDuration }) => secondsOf(turnDuration), isRight: true },
    {
      header: 'DELIVERIES',
      cell: ({ webhooks: { attempts, failed } }) =>
        attempts === 0 ? '' : `${((1 - failed / attempts) * 100).toFixed(1)}%`,
      isRight: true,
      optional: true,
    },
    {
      header: 'COST',
      cell: ({ costUsd }) => short(costUsd),
      isRight: true,
    },
  ];
}

/** Median and 95th percentile. */
function secondsOf({ p50Ms, p95Ms }: AnalyticsSum['firstToken']): string {
  if (p50Ms === null || p95Ms === null) return '';
  return `${(p50Ms / 1000).toFixed(1)} / ${(p95Ms / 1000).toFixed(1)} s`;
}

function nameOf(at: string, step: (typeof steps)[number]): string {
  return step === 'day' ? at.slice(0, 10) : `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
}
