/** How many sessions and turns there were over time, how they ended, how long they took, and what they cost. */

import { EnvironmentName, Id, Nullable, OneOf, type Static, Strict, Timestamp, Type } from './schema.ts';
import { PricesDate } from './usage.ts';

export const analyticsSteps = ['minute', 'hour', 'day'] as const;
export type AnalyticsStep = (typeof analyticsSteps)[number];
const groupings = ['agent', 'environment', 'model'] as const;

const Latency = (description: string) =>
  Type.Object(
    {
      count: Type.Integer({ description: 'How many were measured.' }),
      p50Ms: Nullable(Type.Integer(), { description: 'The median; null if none was measured.' }),
      p95Ms: Nullable(Type.Integer(), { description: 'The 95th percentile; null if none was measured.' }),
    },
    { description: `${description} Percentiles are right to within a fifth.` },
  );

const sums = {
  sessions: Type.Object({
    opened: Type.Integer(),
    completed: Type.Integer(),
    failed: Type.Integer(),
    cancelled: Type.Integer(),
  }),
  turns: Type.Object({
    ended: Type.Integer({ description: 'Turns that ended, failed ones included.' }),
    failed: Type.Integer(),
  }),
  turnDuration: Latency('How long turns worked, without the time that they waited for approvals and results.'),
  firstToken: Latency('Time from a model call to the first piece of its response.'),
  modelCalls: Type.Object({
    succeeded: Type.Integer(),
    failed: Type.Integer({ description: 'Attempts that failed, also if a retry or a fallback succeeded.' }),
  }),
  toolCalls: Type.Object({
    ended: Type.Integer({ description: 'Calls that the service ran itself, failed ones included.' }),
    failed: Type.Integer(),
  }),
  webhooks: Type.Object({
    attempts: Type.Integer({ description: 'Requests to your receivers, failed ones included.' }),
    failed: Type.Integer(),
  }),
  webhookDuration: Latency('How long receivers took to respond.'),
  tokens: Type.Integer({ description: 'Input and output tokens.' }),
  webSearches: Type.Integer({ description: 'Searches of the web that providers ran themselves, as they report them.' }),
  costUsd: Type.Number({ description: 'Cost of the model calls that have a price.' }),
};

export const AnalyticsSum = Type.Object(sums, { title: 'AnalyticsSum', description: 'What happened in a period.' });
export type AnalyticsSum = Static<typeof AnalyticsSum>;

const AnalyticsPoint = Type.Object(
  { at: Type.Unsafe<string>({ ...Timestamp, description: 'The beginning of the minute, hour or UTC day.' }), ...sums },
  { title: 'AnalyticsPoint' },
);
export type AnalyticsPoint = Static<typeof AnalyticsPoint>;

const AnalyticsGroup = Type.Object(
  {
    group: Type.String({
      description:
        'An `agentId`, the name of an environment, or `provider/model`; `""` for what is of no agent or model.',
    }),
    ...sums,
    failures: Type.Array(
      Type.Object({
        code: Type.String({ description: 'The error of the turns, such as `model_rate_limited`.' }),
        count: Type.Integer(),
        sessionId: Nullable(Id('ses'), { description: 'The last session with the error; it may be deleted.' }),
      }),
      { description: 'Why turns failed, the most frequent error first; at most 20.' },
    ),
  },
  { title: 'AnalyticsGroup' },
);
export type AnalyticsGroup = Static<typeof AnalyticsGroup>;

export const GetAnalytics = Strict({
  from: Type.Optional(Type.Unsafe<string>({ ...Timestamp, description: 'Default: 24 hours before `to`.' })),
  to: Type.Optional(Type.Unsafe<string>({ ...Timestamp, description: 'Default: now.' })),
  step: Type.Optional(
    OneOf(analyticsSteps, {
      description:
        'The length of a point. By the minute: the last 2 hours. By the hour: at most 31 days, of the last 62. By the day: at most 366 days. Default: the finest of at most 60 points, if available.',
    }),
  ),
  groupBy: Type.Optional(OneOf(groupings, { description: 'Also lists the sums of each agent, environment or model.' })),
  environment: Type.Optional(EnvironmentName),
  agentId: Type.Optional(Id('agt', 'Only what is of this agent; webhooks are of no agent.')),
});

export const Analytics = Type.Object(
  {
    from: Type.Unsafe<string>({ ...Timestamp, description: 'The beginning of the first point.' }),
    to: Type.Unsafe<string>({ ...Timestamp, description: 'The end of the last point; exclusive.' }),
    step: OneOf(analyticsSteps),
    total: Type.Unsafe<AnalyticsSum>({ ...AnalyticsSum, description: 'Sums of the whole period.' }),
    previous: Type.Unsafe<AnalyticsSum>({
      ...AnalyticsSum,
      description: 'Sums of the period of the same length before it.',
    }),
    points: Type.Array(AnalyticsPoint, {
      description: 'Every minute, hour or day in order, also those without anything.',
    }),
    groups: Type.Array(AnalyticsGroup, {
      description:
        'With `groupBy`: those with the most failed turns first, then those with the most turns; at most 200.',
    }),
    pricesDate: PricesDate,
  },
  { title: 'Analytics' },
);
export type Analytics = Static<typeof Analytics>;
