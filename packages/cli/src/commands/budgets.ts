// `signalbox budgets …`: spending limits for a day or a month.
import type { OrganizationBudget } from '@signalbox/client';
import { command } from '../command.ts';
import { type Dollars, printWithDollars } from '../dollars.ts';
import { printResult } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { type Column, Table } from '../table.ts';
import { shown } from '../text.ts';

const budget = { name: { about: 'the name of the budget, such as monthly' } } as const;

const list = command({
  name: 'list',
  summary: 'List budgets, with what was spent in the current day or month',
  options: {
    environment: { type: 'string', value: 'NAME', about: 'only budgets of this environment' },
    agent: { type: 'string', value: 'AGENT', about: 'only budgets of this agent' },
    ...serviceOptions,
  },
  examples: [['budgets list', 'how much of each budget is used']],
  needs: ['usage:read'],
  operations: ['listBudgets'],
  async run(input) {
    const { environment, agent: agentId, json } = input.values;
    const { stdout } = input.terminal;
    const budgets = await serviceOf(input).budgets.list({ environment, agentId });
    if (json) return stdout.write(`${JSON.stringify({ data: budgets })}\n`);
    await printWithDollars(input.terminal, budgets[0] ?? {}, (dollars) =>
      new Table(stdout, columns(dollars)).print(budgets),
    );
  },
});

const columns = ({ short }: Dollars): Column<OrganizationBudget>[] => [
  { header: 'BUDGET', cell: ({ name }) => name },
  { header: 'OF', cell: ofText, shrinks: true },
  { header: 'PERIOD', cell: ({ period }) => period },
  { header: 'SPENT', cell: ({ spentUsd }) => short(spentUsd), isRight: true },
  { header: 'LIMIT', cell: ({ limitUsd }) => short(limitUsd), isRight: true },
  { header: 'USED', cell: ({ spentUsd, limitUsd }) => `${Math.floor((spentUsd / limitUsd) * 100)}%`, isRight: true },
  { header: 'STOPS', cell: ({ stop }) => (stop ? 'yes' : 'no'), optional: true },
];

const set = command({
  name: 'set',
  summary: 'Create or replace a budget',
  arguments: budget,
  options: {
    limit: { type: 'number', value: 'USD', required: true, about: 'the limit, in US dollars' },
    period: { type: 'string', value: 'PERIOD', choices: ['day', 'month'], about: 'day or month, in UTC (month)' },
    environment: { type: 'string', value: 'NAME', about: 'only sessions of this environment' },
    agent: { type: 'string', value: 'AGENT', about: 'only sessions of this agent' },
    'api-key-id': { type: 'string', value: 'KEY', about: 'only sessions that count for this API key' },
    threshold: {
      type: 'string',
      value: 'PERCENT',
      multiple: true,
      about: 'alert at this percentage of the limit (50, 80 and 100)',
    },
    stop: { type: 'boolean', about: 'start no more turns once the limit is reached' },
    new: { type: 'boolean', about: 'only create it: fail if there is a budget of this name' },
    ...serviceOptions,
  },
  examples: [
    ['budgets set monthly --limit 500', 'alert at 250, 400 and 500 US dollars in a month'],
    [
      'budgets set staging --limit 20 --period day --environment staging --stop',
      'stop sessions in staging at 20 US dollars a day',
    ],
  ],
  needs: ['organization:manage'],
  operations: ['setBudget'],
  async run(input) {
    const { limit, period = 'month', environment, agent: agentId, 'api-key-id': keyId, threshold, stop } = input.values;
    const { budgets } = serviceOf(input);
    const params = {
      limitUsd: limit,
      period,
      ...(environment !== undefined && { environment }),
      ...(agentId !== undefined && { agentId }),
      ...(keyId !== undefined && { keyId }),
      ...(threshold !== undefined && { thresholds: threshold.map(Number) }),
      ...(stop !== undefined && { stop }),
    };
    const stored = await (input.values.new
      ? budgets.create(input.args.name, params)
      : budgets.set(input.args.name, params));
    await printWithDollars(input.terminal, stored, ({ short }) =>
      printResult(input, stored, async () =>
        input.terminal.stdout.write(
          `set: ${stored.name}, ${short(stored.spentUsd)} of ${short(stored.limitUsd)} spent\n`,
        ),
      ),
    );
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete a budget',
  arguments: budget,
  options: serviceOptions,
  examples: [['budgets delete monthly', 'delete a budget']],
  needs: ['organization:manage'],
  operations: ['deleteBudget'],
  async run(input) {
    const deleted = await serviceOf(input).budgets.delete(input.args.name);
    await printResult(input, deleted, `deleted: ${deleted.name}`);
  },
});

export const commands = [list, set, remove];

function ofText({ environment, agentId, keyId }: OrganizationBudget): string {
  return shown([environment, agentId, keyId].filter((one) => one !== null).join(', ')) || 'everything';
}
