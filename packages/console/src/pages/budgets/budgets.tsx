// Budgets: how much of each is spent.
import type { OrganizationBudget } from '@signalbox/client';
import { Wallet } from 'lucide-react';
import { useState } from 'react';
import { useAgentName } from '../../data/agent-names.ts';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Meter } from '../../ui/meter.tsx';
import { Page } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { DeleteBudgetDialog, SetBudgetDialog } from './budget-dialogs.tsx';

// Spending has no events of its own.
const AGAIN_MS = 30_000;

type Open = { kind: 'set'; budget?: OrganizationBudget } | { kind: 'delete'; budget: OrganizationBudget };

export function BudgetsPage() {
  const { may } = useOrganization();
  const environment = useEnvironment();
  const [open, setOpen] = useState<Open>();
  const all = useApiQuery(['budgets', 'all'], (client) => client.budgets.list(), { everyMs: AGAIN_MS });
  // Budgets of the whole organization count what the environment spends as well.
  const isShown = (budget: OrganizationBudget) =>
    environment === undefined || budget.environment === null || budget.environment === environment;
  const data = all.data?.filter(isShown).toSorted((a, b) => shareOf(b) - shareOf(a));
  const close = () => setOpen(undefined);
  const create = may('admin') && (
    <Button look="primary" onClick={() => setOpen({ kind: 'set' })}>
      Create budget
    </Button>
  );
  return (
    <Page
      title="Budgets"
      operation="setBudget"
      about="What sessions should cost in a day or a month."
      actions={data && data.length > 0 ? create : undefined}
    >
      <Table
        name="budgets"
        caption="Budgets"
        query={{ ...all, data }}
        columns={useBudgetColumns()}
        rowKey={({ name }) => name}
        {...(may('admin') && {
          actions: (budget: OrganizationBudget) => (
            <Menu
              label={`Actions for ${budget.name}`}
              items={[
                { label: 'Edit', onSelect: () => setOpen({ kind: 'set', budget }) },
                { label: 'Delete', danger: true, onSelect: () => setOpen({ kind: 'delete', budget }) },
              ]}
            />
          ),
        })}
        empty={
          <EmptyState
            icon={Wallet}
            title={all.data?.length ? `No budgets of ${environment}` : 'No budgets yet'}
            action={create}
            docs={{ label: 'About budgets', href: '/docs#setBudget' }}
          >
            A budget alerts when sessions cost more than planned, and can stop them.
          </EmptyState>
        }
      />
      {open?.kind === 'set' && (
        <SetBudgetDialog {...(open.budget && { budget: open.budget })} budgets={all.data ?? []} onClose={close} />
      )}
      {open?.kind === 'delete' && <DeleteBudgetDialog budget={open.budget} onClose={close} />}
    </Page>
  );
}

function shareOf({ spentUsd, limitUsd }: OrganizationBudget): number {
  return spentUsd / limitUsd;
}

function useBudgetColumns(): Column<OrganizationBudget>[] {
  const nameOf = useAgentName();
  return [
    { id: 'name', label: 'Budget', cell: ({ name }) => <strong>{name}</strong> },
    {
      id: 'used',
      label: 'Used',
      width: '24%',
      phone: 'aside',
      cell: (budget) => (
        <Meter share={shareOf(budget)} {...(shareOf(budget) >= 1 && budget.stop && { word: 'stopped' })} />
      ),
    },
    {
      id: 'spent',
      label: 'Spent',
      width: '14rem',
      end: true,
      phone: 'under',
      cell: ({ spentUsd, limitUsd, period }) => (
        <>
          <Dollars usd={spentUsd} as="money" /> of <Dollars usd={limitUsd} as="money" /> a {period}
        </>
      ),
    },
    {
      id: 'of',
      label: 'Applies to',
      width: '16%',
      choice: 'shown',
      cell: ({ environment, agentId, keyId }) =>
        [environment, agentId && nameOf(agentId), keyId].filter(Boolean).join(', ') || 'All sessions',
    },
    {
      id: 'limit',
      label: 'At the limit',
      width: '8rem',
      choice: 'shown',
      from: 'desktop',
      cell: ({ stop }) => (stop ? 'stops turns' : 'alerts'),
    },
    {
      id: 'ends',
      label: 'Resets',
      width: '8rem',
      end: true,
      choice: 'shown',
      from: 'desktop',
      cell: ({ periodEndsAt }) => <Time at={periodEndsAt} />,
    },
  ];
}
