/** Budgets of the organization: what sessions should cost in a day or a month, with alerts, and optionally a stop. */

import { EnvironmentName, Id, Nullable, OneOf, type Static, Strict, Timestamp, Type } from './schema.ts';
import { PricesDate } from './usage.ts';

export const budgetPeriods = ['day', 'month'] as const;
export const defaultThresholds = [50, 80, 100] as const;

const BudgetName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  'x-expected': '1 to 63 lower-case letters, digits, "_" and "-", the first a letter',
  description: 'Your name for the budget, such as `monthly`.',
  examples: ['monthly'],
});

const Thresholds = Type.Array(Type.Integer({ minimum: 1, maximum: 1000 }), {
  maxItems: 10,
  uniqueItems: true,
  description: 'Percentages of the limit that alert: each once in a period.',
  examples: [[...defaultThresholds]],
});

const fields = {
  limitUsd: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000_000, examples: [500] }),
  period: OneOf(budgetPeriods, { description: 'A day or a calendar month, of UTC.' }),
  stop: Type.Boolean({
    description: 'Once the limit is reached, no turn begins and running turns end before their next model call.',
  }),
};

export const OrganizationBudget = Type.Object(
  {
    name: BudgetName,
    ...fields,
    environment: Nullable(Type.String(), { description: 'Only sessions of this environment; null: of all.' }),
    agentId: Nullable(Id('agt'), { description: 'Only sessions of this agent; null: of all.' }),
    keyId: Nullable(Id('key'), { description: 'Only sessions that count for this API key; null: of all.' }),
    thresholds: Thresholds,
    spentUsd: Type.Number({
      description: 'In the current period. Model calls without a price are not included.',
      examples: [412.5],
    }),
    pricesDate: PricesDate,
    periodStartsAt: Timestamp,
    periodEndsAt: Timestamp,
    alerts: Type.Array(Type.Object({ threshold: Type.Integer({ examples: [80] }), alertedAt: Timestamp }), {
      description: 'The thresholds that were reached in the current period, lowest first.',
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: 'OrganizationBudget' },
);
export type OrganizationBudget = Static<typeof OrganizationBudget>;

export const BudgetParams = Strict({ budgetName: BudgetName });

export const ListBudgets = Strict({
  environment: Type.Optional(EnvironmentName),
  agentId: Type.Optional(Id('agt', 'Only budgets of this agent.')),
});

export const SetBudget = Strict(
  {
    limitUsd: fields.limitUsd,
    period: fields.period,
    environment: Type.Optional(EnvironmentName),
    agentId: Type.Optional(Id('agt', 'Only sessions of this agent.')),
    keyId: Type.Optional(Id('key', 'Only sessions that count for this API key.')),
    thresholds: Type.Optional(Type.Unsafe<number[]>({ ...Thresholds, default: [...defaultThresholds] })),
    stop: Type.Optional(Type.Boolean({ ...fields.stop, default: false })),
  },
  { title: 'SetBudget' },
);

export const BudgetList = Type.Object({
  data: Type.Array(OrganizationBudget, { description: 'By name. There are at most 100.' }),
});
