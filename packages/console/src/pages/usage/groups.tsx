// The groups of a report as a table.
import type { UsageGroup, UsageReport, UsageSum } from '@signalbox/client';
import type { LinkComponentProps } from '@tanstack/react-router';
import { ChartColumn } from 'lucide-react';
import { useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Meter } from '../../ui/meter.tsx';
import { type Column, loaded, Table } from '../../ui/table.tsx';
import { PlainText } from '../../ui/text.tsx';
import { number } from '../sessions/session-text.ts';
import { Cost } from './figures.tsx';
import { byGroup, foundIn, groupings } from './groupings.ts';

/** `group` null: the sum of the groups beyond those that are listed. */
type Row = Omit<UsageGroup, 'group'> & { group: string | null };

const amounts: Record<string, (row: UsageSum) => number> = {
  cost: ({ costUsd }) => costUsd ?? -1,
  calls: ({ steps }) => steps,
  input: ({ inputTokens }) => inputTokens,
  output: ({ outputTokens }) => outputTokens,
};

export function Groups({
  report: { groupBy, data, other, total },
  q,
  nameOf,
}: {
  report: UsageReport;
  /** Only groups whose name or id contains it. */
  q: string;
  nameOf: (group: string) => string;
}) {
  const { organizationId } = useOrganization();
  // The order of the report is by cost.
  const [sort, setSort] = useState({ by: 'cost', isDescending: true });
  const found = foundIn(data, q, nameOf);
  const all: Row[] = other && q === '' ? [...found, { ...other, group: null }] : found;
  const amount = amounts[sort.by]!;
  const rows = all.toSorted((a, b) => (sort.isDescending ? amount(b) - amount(a) : amount(a) - amount(b)));
  const shareOf = (row: Row) =>
    total.costUsd
      ? (row.costUsd ?? 0) / total.costUsd
      : (row.inputTokens + row.outputTokens) / Math.max(1, total.inputTokens + total.outputTokens);
  const columns: Column<Row>[] = [
    {
      id: 'group',
      label: groupings[groupBy],
      cell: ({ group }) => {
        if (group === null) return <span className="quiet">All others</span>;
        const name = <PlainText text={nameOf(group)} />;
        return groupBy === 'model' ? <code>{name}</code> : name;
      },
    },
    {
      id: 'share',
      label: total.costUsd ? 'Share of cost' : 'Share of tokens',
      width: '22%',
      from: 'desktop',
      cell: (row) => <Meter share={shareOf(row)} isPart />,
    },
    {
      id: 'cost',
      label: 'Cost',
      width: '8rem',
      end: true,
      sorts: true,
      phone: 'aside',
      cell: (row) => (
        <span
          className={row.costUsd === null ? 'quiet' : undefined}
          title={row.costUsd !== null && row.unpricedSteps > 0 ? withoutPrice(row) : undefined}
        >
          <Cost of={row} />
          {row.costUsd !== null && row.unpricedSteps > 0 && (
            <>
              *<span className="visually-hidden"> {withoutPrice(row)}</span>
            </>
          )}
        </span>
      ),
    },
    {
      id: 'calls',
      label: 'Model calls',
      width: '8rem',
      end: true,
      sorts: true,
      phone: 'under',
      cell: ({ steps }) => number(steps),
    },
    {
      id: 'input',
      label: 'Input tokens',
      width: '9rem',
      end: true,
      sorts: true,
      cell: ({ inputTokens }) => number(inputTokens),
    },
    {
      id: 'cached',
      label: 'Cached tokens',
      width: '9rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ cachedTokens }) => number(cachedTokens),
    },
    {
      id: 'output',
      label: 'Output tokens',
      width: '9rem',
      end: true,
      sorts: true,
      cell: ({ outputTokens }) => number(outputTokens),
    },
    {
      id: 'searches',
      label: 'Searches',
      width: '7rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ webSearches = 0 }) => number(webSearches),
    },
  ];
  const linkOf = ({ group }: Row): LinkComponentProps | undefined => {
    if (!group) return undefined;
    if (groupBy === 'agent')
      return { to: '/$organizationId/agents/$agentId', params: { organizationId, agentId: group } };
    if (groupBy === 'environment')
      return { to: '/$organizationId/environments/$name', params: { organizationId, name: group } };
    if (groupBy === 'endUser')
      return { to: '/$organizationId/sessions', params: { organizationId }, search: { endUserId: group } };
    return undefined;
  };
  return (
    <Table
      name={`usage-${groupBy}`}
      caption={byGroup('Usage', groupBy)}
      query={loaded(rows)}
      columns={columns}
      rowKey={({ group }) => group ?? 'all others'}
      rowLink={linkOf}
      sort={{ ...sort, onChange: (by, isDescending) => setSort({ by, isDescending }) }}
      empty={
        <EmptyState
          icon={ChartColumn}
          title={data.length === 0 ? 'No model calls in this period' : `Nothing matches “${q}”`}
        />
      }
    />
  );
}

function withoutPrice({ unpricedSteps }: UsageSum): string {
  return `without ${number(unpricedSteps)} calls that had no price`;
}
