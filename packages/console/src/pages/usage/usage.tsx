// The usage of the organization, over all sessions, including deleted ones.
import type { UsageGroup, UsageReport, UsageSum } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useAgentNames } from '../../agent-names.ts';
import { EnvironmentFilter } from '../../filters.tsx';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { withFilter } from '../../search-params.ts';
import { Select } from '../../ui/field.tsx';
import { type Column, Rows } from '../../ui/list.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { inDays, monthFromNow } from '../../ui/time.tsx';
import { costText, number } from '../sessions/session-text.ts';
import { DayCharts, Unpriced } from './day-charts.tsx';
import { type Period, type UsageSearch, usageSearch } from './search-params.ts';
import './usage.css';

const periodWords: Record<Period, { label: string; within: string }> = {
  '7': { label: 'The last 7 days', within: 'in the last 7 days' },
  '30': { label: 'The last 30 days', within: 'in the last 30 days' },
  '90': { label: 'The last 90 days', within: 'in the last 90 days' },
  '365': { label: 'The last 365 days', within: 'in the last 365 days' },
  month: { label: 'This month', within: 'this month' },
  'last-month': { label: 'Last month', within: 'last month' },
};

const groupings: Record<UsageReport['groupBy'], string> = {
  day: 'Day',
  agent: 'Agent',
  environment: 'Environment',
  model: 'Model',
  endUser: 'End user',
  apiKey: 'API key',
};

function rangeOf(period: Period): { from: string; to?: string } {
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
  const query = useApiQuery(['usage', period, groupBy, environment ?? null], (client) =>
    client.usage.get({ ...rangeOf(period), groupBy, ...(environment && { environment }) }),
  );
  return (
    <Page title="Usage" operation="getUsage" about="Token usage and cost, using your configured prices.">
      <Filters
        search={search}
        onSearch={(next) => void navigate({ to: '.', search: next, replace: true, resetScroll: false })}
      />
      <Await query={query}>
        {(report) => (
          <>
            <Total report={report} />
            {report.groupBy === 'day' ? (
              <DayCharts report={report} period={periodWords[period].within} />
            ) : (
              <Groups report={report} />
            )}
          </>
        )}
      </Await>
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

function Groups({ report: { groupBy, data, other } }: { report: UsageReport }) {
  const rows: (UsageGroup | (UsageSum & { group: null }))[] = other ? [...data, { group: null, ...other }] : data;
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
    <div className="data-frame">
      {rows.length === 0 ? (
        <div className="empty">
          <p>No model calls in this period.</p>
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
  );
}

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
