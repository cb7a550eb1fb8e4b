// The usage of the organization, over all sessions, including deleted ones.
import type { UsageGroup, UsageReport, UsageSum } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Download } from 'lucide-react';
import { useAgentNames } from '../../agent-names.ts';
import { EnvironmentFilter } from '../../filters.tsx';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { withFilter } from '../../search-params.ts';
import { Button } from '../../ui/button.tsx';
import { Select, TextField } from '../../ui/field.tsx';
import { type Column, Rows } from '../../ui/list.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { inDays, monthFromNow } from '../../ui/time.tsx';
import { costText, number } from '../sessions/session-text.ts';
import { Budgets } from './budgets.tsx';
import { saveCsv } from './csv.ts';
import { DayCharts, Unpriced } from './day-charts.tsx';
import { type Period, type UsageSearch, usageSearch } from './search-params.ts';
import { SplitChart } from './split-chart.tsx';
import './usage.css';

const periodWords: Record<Period, { label: string; within: string }> = {
  '7': { label: 'The last 7 days', within: 'in the last 7 days' },
  '30': { label: 'The last 30 days', within: 'in the last 30 days' },
  '90': { label: 'The last 90 days', within: 'in the last 90 days' },
  '365': { label: 'The last 365 days', within: 'in the last 365 days' },
  month: { label: 'This month', within: 'this month' },
  'last-month': { label: 'Last month', within: 'last month' },
  custom: { label: 'Custom…', within: 'in this period' },
};

const groupings: Record<UsageReport['groupBy'], string> = {
  day: 'Day',
  agent: 'Agent',
  environment: 'Environment',
  model: 'Model',
  endUser: 'End user',
  apiKey: 'API key',
};

const DAY_MS = 86_400_000;

function rangeOf({ period = '30', from, to }: UsageSearch): { from: string; to?: string } {
  if (period === 'custom') {
    const first = Date.parse(from ?? '') || Date.parse(inDays(-29));
    const last = Date.parse(to ?? '') || Date.parse(inDays(0));
    // An end before the start is the same day.
    return {
      from: new Date(first).toISOString(),
      to: new Date(Math.max(first, last - (last % DAY_MS)) + DAY_MS).toISOString(),
    };
  }
  if (period === 'month') return { from: monthFromNow(0) };
  // The range ends at midnight.
  if (period === 'last-month') return { from: monthFromNow(-1), to: monthFromNow(0) };
  // Today counts as one of the days.
  return { from: inDays(1 - Number(period)) };
}

export function UsagePage() {
  const search = usageSearch(useSearch({ from: '/$organizationId/usage' }));
  const { period = '30', groupBy = 'day', environment } = search;
  const navigate = useNavigate();
  const range = rangeOf(search);
  const within = environment === undefined ? {} : { environment };
  const key = [period, search.from ?? null, search.to ?? null, environment ?? null];
  const query = useApiQuery(['usage', ...key, groupBy], (client) => client.usage.get({ ...range, groupBy, ...within }));
  const onSearch = (next: UsageSearch) => void navigate({ to: '.', search: next, replace: true, resetScroll: false });
  return (
    <Page title="Usage" operation="getUsage" about="Token usage and cost, using your configured prices.">
      <Filters search={search} onSearch={onSearch} />
      <Await query={query}>
        {(report) => (
          <>
            <Total report={report} />
            {report.groupBy === 'day' ? (
              <DayCharts report={report} period={periodWords[period].within} />
            ) : (
              <>
                <OverTime keys={key} range={range} groupBy={report.groupBy} within={within} />
                <Groups report={report} search={search} onSearch={onSearch} />
              </>
            )}
          </>
        )}
      </Await>
      <Budgets />
    </Page>
  );
}

function Filters({ search, onSearch }: { search: UsageSearch; onSearch: (search: UsageSearch) => void }) {
  return (
    <search className="filters" aria-label="Filter usage">
      <Select
        label="Period"
        value={search.period ?? '30'}
        options={Object.entries(periodWords).map(([value, { label }]) => ({ value, label }))}
        onChange={({ currentTarget: { value } }) =>
          onSearch(withFilter(search, 'period', value === '30' ? '' : (value as Period)))
        }
      />
      {search.period === 'custom' && <CustomPeriod search={search} onSearch={onSearch} />}
      <Select
        label="Group by"
        value={search.groupBy ?? 'day'}
        options={Object.entries(groupings).map(([value, label]) => ({ value, label }))}
        onChange={({ currentTarget: { value } }) =>
          onSearch(withFilter(search, 'groupBy', value === 'day' ? '' : (value as UsageReport['groupBy'])))
        }
      />
      <EnvironmentFilter
        value={search.environment}
        onChange={(environment) => onSearch(withFilter(search, 'environment', environment))}
      />
    </search>
  );
}

function CustomPeriod({ search, onSearch }: { search: UsageSearch; onSearch: (search: UsageSearch) => void }) {
  const range = rangeOf(search);
  const last = new Date(Date.parse(range.to!) - 1).toISOString();
  return (
    <>
      <TextField
        label="First day (UTC)"
        name="from"
        type="date"
        value={search.from ?? range.from.slice(0, 10)}
        onChange={({ currentTarget: { value } }) => onSearch(withFilter(search, 'from', value))}
      />
      <TextField
        label="Last day (UTC)"
        name="to"
        type="date"
        value={search.to ?? last.slice(0, 10)}
        onChange={({ currentTarget: { value } }) => onSearch(withFilter(search, 'to', value))}
      />
    </>
  );
}

/** The days of the period, divided by what the table below is grouped by. */
function OverTime({
  keys,
  range,
  groupBy,
  within,
}: {
  keys: readonly (string | null)[];
  range: { from: string; to?: string };
  groupBy: Exclude<UsageReport['groupBy'], 'day'>;
  within: { environment?: string };
}) {
  const names = useAgentNames();
  const { data: keyNames } = useApiQuery(['usage', ...keys, 'names'], (client) =>
    client.usage.get({ ...range, groupBy: 'apiKey', ...within }).then(({ data }) => data),
  );
  const query = useApiQuery(['usage', ...keys, 'split', groupBy], (client) =>
    client.usage.get({ ...range, splitBy: groupBy, ...within }),
  );
  const nameOf = (group: string) => {
    if (groupBy === 'agent') return names.get(group) ?? group;
    if (groupBy === 'endUser') return group || 'No end user';
    if (groupBy !== 'apiKey') return group;
    return group === '' ? 'No key' : (keyNames?.find((one) => one.group === group)?.name ?? group);
  };
  const title = `${groupings[groupBy]} by day`;
  return (
    <section className="card">
      <Await query={query}>
        {(report) =>
          report.total.steps === 0 ? (
            <p className="quiet">No model calls in this period.</p>
          ) : (
            <SplitChart
              title={title}
              name={title}
              total={report.total.costUsd === null ? 'tokens' : 'cost, days of UTC'}
              report={report}
              nameOf={nameOf}
            />
          )
        }
      </Await>
    </section>
  );
}

function Total({ report: { total, from, to } }: { report: UsageReport }) {
  // `to` is exclusive, so the last day is the one before it.
  const last = new Date(Date.parse(to) - 1).toISOString().slice(0, 10);
  return (
    <section className="card stack tight" aria-label="Total">
      <p className="quiet small">
        {from.slice(0, 10)} to {last} (UTC)
      </p>
      <dl className="totals">
        <div>
          <dt>Cost</dt>
          <dd>{costOf(total)}</dd>
        </div>
        <div>
          <dt>Model calls</dt>
          <dd>{number(total.steps)}</dd>
        </div>
        <div>
          <dt>Input tokens</dt>
          <dd>{number(total.inputTokens)}</dd>
        </div>
        <div>
          <dt>Cached input tokens</dt>
          <dd>{number(total.cachedTokens)}</dd>
        </div>
        {total.cacheWriteTokens !== undefined && (
          <div>
            <dt>Written to cache</dt>
            <dd>{number(total.cacheWriteTokens)}</dd>
          </div>
        )}
        <div>
          <dt>Output tokens</dt>
          <dd>{number(total.outputTokens)}</dd>
        </div>
      </dl>
      {total.costUsd !== null && <Unpriced calls={total.unpricedSteps} />}
    </section>
  );
}

/** An unknown cost is not shown as zero. */
function costOf({ costUsd, steps }: UsageSum): string {
  if (costUsd !== null) return costText(costUsd);
  return steps === 0 ? '–' : 'no price';
}

function Groups({
  report: { groupBy, data, other, from, to },
  search,
  onSearch,
}: {
  report: UsageReport;
  search: UsageSearch;
  onSearch: (search: UsageSearch) => void;
}) {
  const names = useAgentNames();
  const { q = '' } = search;
  const textOf = ({ group, name }: UsageGroup) => [group, name ?? '', names.get(group) ?? ''];
  const found = data.filter((row) =>
    textOf(row).some((text) => text.toLocaleLowerCase().includes(q.toLocaleLowerCase())),
  );
  const rows: (UsageGroup | (UsageSum & { group: null }))[] =
    other && q === '' ? [...found, { group: null, ...other }] : found;
  const columns: Column<(typeof rows)[number]>[] = [
    {
      label: groupings[groupBy],
      cell: (row) => (row.group === null ? 'All others' : <Group groupBy={groupBy} {...row} />),
    },
    {
      label: 'Cost',
      end: true,
      cell: (sum) => (
        <span className="number">
          {sum.costUsd === null ? <span className="quiet">{costOf(sum)}</span> : costOf(sum)}
          {sum.costUsd !== null && sum.unpricedSteps > 0 && (
            <span className="quiet small"> excluding {number(sum.unpricedSteps)} calls without a price</span>
          )}
        </span>
      ),
    },
    { label: 'Model calls', end: true, cell: ({ steps }) => <span className="number">{number(steps)}</span> },
    {
      label: 'Input tokens',
      end: true,
      cell: ({ inputTokens, cachedTokens }) => (
        <span className="number">
          {number(inputTokens)}
          {cachedTokens > 0 && <span className="quiet small"> ({number(cachedTokens)} cached)</span>}
        </span>
      ),
    },
    {
      label: 'Output tokens',
      end: true,
      cell: ({ outputTokens }) => <span className="number">{number(outputTokens)}</span>,
    },
  ];
  return (
    <section className="stack tight" aria-label="Groups">
      <div className="row apart">
        <TextField
          label="Search groups"
          name="q"
          type="search"
          value={q}
          onChange={({ currentTarget: { value } }) => onSearch(withFilter(search, 'q', value))}
        />
        <Button
          disabled={rows.length === 0}
          onClick={() =>
            saveCsv(
              `usage-by-${groupBy}-${from.slice(0, 10)}-to-${to.slice(0, 10)}.csv`,
              [groupBy, 'name', ...csvFields],
              rows.map((row) => [
                row.group ?? 'others',
                row.group === null ? '' : ((row as UsageGroup).name ?? names.get(row.group) ?? ''),
                ...csvFields.map((field) => row[field] ?? ''),
              ]),
            )
          }
        >
          <Download aria-hidden="true" />
          Export CSV
        </Button>
      </div>
      <div className="data-frame">
        {rows.length === 0 ? (
          <div className="empty">
            <p>{data.length === 0 ? 'No model calls in this period.' : `Nothing matches “${q}”.`}</p>
          </div>
        ) : (
          <Rows
            caption={`Usage by ${groupings[groupBy].toLowerCase()}`}
            items={rows}
            columns={columns}
            rowKey={({ group }) => group ?? 'all others'}
          />
        )}
      </div>
    </section>
  );
}

const csvFields = [
  'costUsd',
  'steps',
  'unpricedSteps',
  'inputTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'outputTokens',
] as const;

function Group({ groupBy, group, name }: { groupBy: UsageReport['groupBy'] } & Pick<UsageGroup, 'group' | 'name'>) {
  const { organizationId } = useOrganization();
  const names = useAgentNames();
  if (groupBy === 'model') {
    return (
      <code>
        <PlainText text={group} />
      </code>
    );
  }
  if (groupBy === 'endUser') {
    if (group === '') return <span className="quiet">No end user</span>;
    return (
      <Link to="/$organizationId/sessions" params={{ organizationId }} search={{ endUserId: group }}>
        <PlainText text={group} />
      </Link>
    );
  }
  if (groupBy === 'apiKey') {
    if (group === '') return <span className="quiet">No key: people in the console</span>;
    return <PlainText text={name ?? group} />;
  }
  if (groupBy !== 'agent') return <PlainText text={group} />;
  return (
    <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId: group }}>
      <PlainText text={names.get(group) ?? group} />
    </Link>
  );
}
