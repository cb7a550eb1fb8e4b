// The usage of the organization, over all sessions, including deleted ones.
import type { UsageReport } from '@signalbox/client';
import { useSearch } from '@tanstack/react-router';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { withFilter } from '../../lib/search-params.ts';
import { Select } from '../../ui/field.tsx';
import { FilterBar } from '../../ui/filter-bar.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { SkeletonCards, SkeletonFigures } from '../../ui/skeleton.tsx';
import { DayCharts } from './day-charts.tsx';
import { DayField } from './day-field.tsx';
import { ExportCsv } from './export-csv.tsx';
import { UsageFigures } from './figures.tsx';
import { byGroup, groupings, useGroupName } from './groupings.ts';
import { Groups } from './groups.tsx';
import { daysText, periodWords, rangeBefore, rangeOf } from './periods.ts';
import { type Period, type UsageSearch, usageSearch } from './search-params.ts';
import { SplitChart } from './split-chart.tsx';
import './usage.css';

export function UsagePage() {
  const search = usageSearch(useSearch({ from: '/$organizationId/usage' }));
  const { period = '30', groupBy = 'day', drafts } = search;
  const environment = useEnvironment();
  const change = useChangeSearch<UsageSearch>();
  const range = rangeOf(search);
  const within = {
    ...(environment !== undefined && { environment }),
    // What end users used is not known apart from drafts.
    ...(drafts && groupBy !== 'endUser' && { draft: drafts === 'only' }),
  };
  const key = ['usage', period, search.from, search.to, environment, groupBy, drafts];
  const days = useApiQuery(
    [...key, 'days'],
    (client) => client.usage.get({ ...range, ...within, ...(groupBy !== 'day' && { splitBy: groupBy }) }),
    { keeps: { environment } },
  );
  const before = useApiQuery([...key, 'before'], (client) => client.usage.get({ ...rangeBefore(range), ...within }));
  const groups = useApiQuery([...key, 'groups'], (client) => client.usage.get({ ...range, ...within, groupBy }), {
    enabled: groupBy !== 'day',
    keeps: { environment },
  });
  const nameOf = useGroupName(groupBy, groups.data);
  const onSearch = (next: UsageSearch, more?: { isTyping: boolean }) => change(() => next, more);
  const isGrouped = groups.data !== undefined && groups.data.groupBy === groupBy;
  return (
    <Page
      title="Usage"
      operation="getUsage"
      about={`Tokens and cost ${daysText(range)} (UTC).`}
      actions={
        <>
          <PeriodFields search={search} onSearch={onSearch} />
          <ExportCsv
            report={groupBy === 'day' ? days.data : groups.data}
            q={groupBy === 'day' ? '' : (search.q ?? '')}
            nameOf={nameOf}
          />
        </>
      }
    >
      <Await query={days} skeleton={<SkeletonFigures />}>
        {(report) => <UsageFigures report={report} before={before.data} against={periodWords[period].before} />}
      </Await>
      <div className="row usage-filters">
        <Segmented
          label="Group by"
          value={groupBy}
          options={Object.entries(groupings).map(([value, label]) => ({ value: value as typeof groupBy, label }))}
          onChange={(value) => onSearch(withFilter(search, 'groupBy', value === 'day' ? '' : value))}
        />
        <FilterBar
          filters={
            groupBy === 'endUser'
              ? []
              : [
                  {
                    label: 'Drafts',
                    value: drafts,
                    options: [
                      { value: 'none', label: 'left out' },
                      { value: 'only', label: 'shown alone' },
                    ],
                    onChange: (value) => onSearch(withFilter(search, 'drafts', (value as UsageSearch['drafts']) ?? '')),
                  },
                ]
          }
          {...(groupBy !== 'day' && {
            search: {
              label: 'Search groups',
              value: search.q ?? '',
              onChange: (q: string) => onSearch(withFilter(search, 'q', q), { isTyping: true }),
            },
          })}
        />
      </div>
      {days.data && (
        <>
          {groupBy === 'day' ? (
            <DayCharts report={days.data} />
          ) : (
            <OverTime report={days.data} groupBy={groupBy} nameOf={nameOf} />
          )}
          {groupBy !== 'day' && (
            <Await
              query={{ ...groups, data: isGrouped ? groups.data : undefined }}
              skeleton={<SkeletonCards cards={1} />}
            >
              {(report) => <Groups report={report} q={search.q ?? ''} nameOf={nameOf} />}
            </Await>
          )}
        </>
      )}
    </Page>
  );
}

function PeriodFields({
  search,
  onSearch,
}: {
  search: UsageSearch;
  onSearch: (search: UsageSearch, more?: { isTyping: boolean }) => void;
}) {
  const { period = '30' } = search;
  const range = rangeOf(search);
  const last = new Date(Date.parse(range.to) - 1).toISOString();
  return (
    <>
      <Select
        label="Period"
        quiet
        value={period}
        options={Object.entries(periodWords).map(([value, { label }]) => ({ value, label }))}
        onChange={({ currentTarget: { value } }) =>
          onSearch(withFilter(search, 'period', value === '30' ? '' : (value as Period)))
        }
      />
      {period === 'custom' && (
        <>
          <DayField
            label="First day (UTC)"
            value={range.from.slice(0, 10)}
            onChange={(from) => onSearch(withFilter(search, 'from', from), { isTyping: true })}
          />
          <DayField
            label="Last day (UTC)"
            value={last.slice(0, 10)}
            onChange={(to) => onSearch(withFilter(search, 'to', to), { isTyping: true })}
          />
        </>
      )}
    </>
  );
}

/** The days of the period, divided by what the table below is grouped by. */
function OverTime({
  report,
  groupBy,
  nameOf,
}: {
  report: UsageReport;
  groupBy: Exclude<UsageReport['groupBy'], 'day'>;
  nameOf: (group: string) => string;
}) {
  const title = byGroup(report.total.costUsd === null ? 'Tokens' : 'Cost', groupBy);
  return (
    <section className="card">
      {report.total.steps === 0 ? (
        <p className="quiet">No model calls in this period.</p>
      ) : (
        <SplitChart
          title={title}
          name={title}
          {...(report.total.costUsd === null && { total: 'no model has a price' })}
          report={report}
          nameOf={nameOf}
        />
      )}
    </section>
  );
}
