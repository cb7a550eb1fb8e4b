/** The usage of the organization over all sessions, including deleted ones. */

import { EnvironmentName, Id, Nullable, OneOf, type Static, Strict, Timestamp, Type } from './schema.ts';
import { CacheWriteTokens, WebSearches } from './session-state.ts';

/** Shown beside costs. */
export const PricesDate = Nullable(
  Type.String({
    description: 'The day of the built-in prices, which apply where the operator has set none; null if they are off.',
    examples: ['2026-11-17'],
  }),
);

const sums = {
  inputTokens: Type.Integer({ description: 'Including cached ones.' }),
  outputTokens: Type.Integer(),
  cachedTokens: Type.Integer({ description: 'Input tokens that the provider had in its cache.' }),
  cacheWriteTokens: CacheWriteTokens,
  webSearches: WebSearches,
  steps: Type.Integer({ description: 'Model calls.' }),
  unpricedSteps: Type.Integer({
    description: 'Model calls not included in `costUsd`, because their model had no price.',
  }),
  costUsd: Nullable(Type.Number(), { description: 'To a billionth of a dollar; null if no call had a price.' }),
};

export const UsageSum = Type.Object(sums, {
  title: 'UsageSum',
  description: 'Total usage of several model calls.',
});
export type UsageSum = Static<typeof UsageSum>;

const UsageGroup = Type.Object(
  {
    group: Type.String({
      description:
        'A day such as `2026-01-31`, an `agentId` (`""`: drafts of any agent), the name of an environment, `provider/model` (`worker/queue` for agents that a program of yours runs), the id of an end user (`""`: no end user, or one that was erased), or a `keyId` (`""`: opened by a person).',
    }),
    name: Type.Optional(
      Nullable(Type.String(), { description: 'By API key: the name of the key, also after it was deleted.' }),
    ),
    ...sums,
    split: Type.Optional(
      Type.Array(
        Type.Object(
          {
            group: Nullable(Type.String(), { description: 'As above; null: all groups that are not listed.' }),
            ...sums,
          },
          { title: 'UsagePart' },
        ),
        { description: 'With `splitBy`: the parts of the day, of the 12 groups that cost most in the whole period.' },
      ),
    ),
  },
  { title: 'UsageGroup' },
);
export type UsageGroup = Static<typeof UsageGroup>;

const splittings = ['agent', 'environment', 'model', 'endUser', 'apiKey'] as const;
const groupings = ['day', 'agent', 'environment', 'model', 'endUser', 'apiKey'] as const;

export const GetUsage = Strict({
  from: Type.Optional(
    Type.Unsafe<string>({ ...Timestamp, description: 'At most 366 days before `to`; default: 30 days before.' }),
  ),
  to: Type.Optional(Type.Unsafe<string>({ ...Timestamp, description: 'Default: now.' })),
  groupBy: Type.Optional(OneOf(groupings, { default: 'day' })),
  splitBy: Type.Optional(OneOf(splittings, { description: 'Also divides each day; only with `groupBy=day`.' })),
  agentId: Type.Optional(
    Id(
      'agt',
      'Only the usage of the versions of this agent, or of its drafts with `draft=true`; not with `endUser` in `groupBy` or `splitBy`.',
    ),
  ),
  environment: Type.Optional(EnvironmentName),
  draft: Type.Optional(
    Type.Boolean({
      description:
        'true: only the usage of sessions that run a draft; false: only of others. Not with `endUser` in `groupBy` or `splitBy`.',
    }),
  ),
});

export const UsageReport = Type.Object(
  {
    from: Type.Unsafe<string>({ ...Timestamp, description: 'The beginning of the UTC day of the requested `from`.' }),
    to: Type.Unsafe<string>({ ...Timestamp, description: 'The end of the UTC day of the requested `to`; exclusive.' }),
    groupBy: OneOf(groupings),
    total: Type.Unsafe<UsageSum>({
      ...UsageSum,
      description: 'Sums of the whole period: `data` and `other` together.',
    }),
    data: Type.Array(UsageGroup, {
      description:
        'By day: every day in order, including days without usage. Otherwise the groups with usage, the most expensive first, then those with the most tokens; at most 1,000.',
    }),
    other: Nullable(UsageSum, { description: 'The sum of the groups beyond 1,000; null if all are listed.' }),
    pricesDate: PricesDate,
  },
  { title: 'UsageReport' },
);
export type UsageReport = Static<typeof UsageReport>;
