// Budgets: how much of each is spent, and the dialogs to set and delete one.
import type { OrganizationBudget } from '@signalbox/client';
import { Wallet } from 'lucide-react';
import { useState } from 'react';
import { agentOption, useAgentNames, useAgents } from '../../agent-names.ts';
import { useEnvironmentNames } from '../../environment-names.ts';
import { useApiMutation, useApiQuery, useOrganization } from '../../organization.tsx';
import { money, percent } from '../../text-format.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Checkbox, Select, TextField } from '../../ui/field.tsx';
import { numberIn } from '../../ui/number.ts';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

// Spending has no events of its own.
const AGAIN_MS = 30_000;

type Open = { kind: 'set'; budget?: OrganizationBudget } | { kind: 'delete'; budget: OrganizationBudget };

export function Budgets() {
  const { may } = useOrganization();
  const [open, setOpen] = useState<Open>();
  const query = useApiQuery(['budgets', 'all'], (client) => client.budgets.list(), { everyMs: AGAIN_MS });
  const close = () => setOpen(undefined);
  const create = may('admin') && <Button onClick={() => setOpen({ kind: 'set' })}>Create budget</Button>;
  return (
    <section className="stack tight" id="budgets" aria-labelledby="budgets-title">
      <div className="row apart">
        <h2 id="budgets-title">Budgets</h2>
        {query.data && query.data.length > 0 && create}
      </div>
      <Table
        name="budgets"
        caption="Budgets"
        query={query}
        columns={useBudgetColumns()}
        rowKey={({ name }) => name}
        {...(may('admin') && {
          actions: (budget: OrganizationBudget) => (
            <>
              <Button small onClick={() => setOpen({ kind: 'set', budget })}>
                Edit<span className="visually-hidden"> {budget.name}</span>
              </Button>
              <Button small look="danger" onClick={() => setOpen({ kind: 'delete', budget })}>
                Delete<span className="visually-hidden"> {budget.name}</span>
              </Button>
            </>
          ),
        })}
        empty={
          <EmptyState
            icon={Wallet}
            title="No budgets yet"
            action={create}
            docs={{ label: 'About budgets', href: '/docs#setBudget' }}
          >
            A budget alerts when sessions cost more than planned, and can stop them.
          </EmptyState>
        }
      />
      {open?.kind === 'set' && <SetBudgetDialog {...(open.budget && { budget: open.budget })} onClose={close} />}
      {open?.kind === 'delete' && <DeleteBudgetDialog budget={open.budget} onClose={close} />}
    </section>
  );
}

function useBudgetColumns(): Column<OrganizationBudget>[] {
  const names = useAgentNames();
  return [
    { id: 'name', label: 'Budget', cell: ({ name }) => name },
    {
      id: 'of',
      label: 'Of',
      cell: ({ environment, agentId, keyId }) =>
        [environment, agentId && (names.get(agentId) ?? agentId), keyId].filter(Boolean).join(', ') || 'All sessions',
    },
    {
      id: 'spent',
      label: 'Spent',
      end: true,
      phone: 'under',
      cell: ({ spentUsd, limitUsd, period }) => `${money(spentUsd)} of ${money(limitUsd)} a ${period}`,
    },
    {
      id: 'used',
      label: 'Used',
      end: true,
      phone: 'aside',
      cell: ({ spentUsd, limitUsd, stop }) => {
        const share = spentUsd / limitUsd;
        const tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'good';
        return <Badge tone={tone}>{share >= 1 && stop ? 'stopped' : percent(share)}</Badge>;
      },
    },
    {
      id: 'ends',
      label: 'Starts again',
      end: true,
      choice: 'shown',
      cell: ({ periodEndsAt }) => <Time at={periodEndsAt} />,
    },
  ];
}

function SetBudgetDialog({ budget, onClose }: { budget?: OrganizationBudget; onClose: () => void }) {
  const { data: agents = [] } = useAgents();
  const environments = useEnvironmentNames() ?? [];
  const [draft, setDraft] = useState({
    name: budget?.name ?? 'monthly',
    limit: budget ? String(budget.limitUsd) : '',
    period: budget?.period ?? 'month',
    environment: budget?.environment ?? '',
    agentId: budget?.agentId ?? '',
    thresholds: (budget?.thresholds ?? [50, 80, 100]).join(', '),
    stop: budget?.stop ?? false,
  });
  const change = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }));
  const set = useApiMutation(
    (client, { name, limit, period, environment, agentId, thresholds, stop }: typeof draft) =>
      client.budgets.set(name.trim(), {
        limitUsd: numberIn(limit) as number,
        period,
        stop,
        thresholds: thresholds.split(',').flatMap((text) => numberIn(text.replace('%', '')) ?? []),
        ...(environment && { environment }),
        ...(agentId && { agentId }),
        ...(budget?.keyId && { keyId: budget.keyId }),
      }),
    ['budgets'],
  );
  return (
    <FormDialog
      title={budget ? `Edit ${budget.name}` : 'Create budget'}
      action={budget ? 'Save budget' : 'Create budget'}
      onClose={onClose}
      submit={() => set.mutateAsync(draft)}
    >
      {!budget && (
        <TextField
          label="Name"
          name="name"
          value={draft.name}
          hint="Lower-case letters, digits, “_” and “-”."
          onChange={({ currentTarget: { value } }) => change({ name: value })}
        />
      )}
      <TextField
        label="Limit in US dollars"
        name="limit"
        inputMode="decimal"
        value={draft.limit}
        onChange={({ currentTarget: { value } }) => change({ limit: value })}
      />
      {!budget && (
        <>
          <Select
            label="Period"
            value={draft.period}
            options={[
              { value: 'month', label: 'A calendar month (UTC)' },
              { value: 'day', label: 'A day (UTC)' },
            ]}
            onChange={({ currentTarget: { value } }) => change({ period: value === 'day' ? 'day' : 'month' })}
          />
          <Select
            label="Environment"
            value={draft.environment}
            options={[
              { value: '', label: 'All environments' },
              ...environments.map((name) => ({ value: name, label: name })),
            ]}
            onChange={({ currentTarget: { value } }) => change({ environment: value })}
          />
          <Select
            label="Agent"
            value={draft.agentId}
            options={[{ value: '', label: 'All agents' }, ...agents.map(agentOption)]}
            onChange={({ currentTarget: { value } }) => change({ agentId: value })}
          />
        </>
      )}
      <TextField
        label="Alert at (% of the limit)"
        name="thresholds"
        value={draft.thresholds}
        hint="Each alerts once a period, in the event log and on the overview."
        onChange={({ currentTarget: { value } }) => change({ thresholds: value })}
      />
      <Checkbox
        label="Stop at the limit: no turn begins, and running turns end before their next model call"
        checked={draft.stop}
        onChange={({ currentTarget: { checked } }) => change({ stop: checked })}
      />
    </FormDialog>
  );
}

function DeleteBudgetDialog({ budget: { name, stop }, onClose }: { budget: OrganizationBudget; onClose: () => void }) {
  const remove = useApiMutation((client, _: undefined) => client.budgets.delete(name), ['budgets']);
  return (
    <FormDialog
      title={`Delete ${name}?`}
      action="Delete budget"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>Its alerts are deleted as well. {stop && 'Sessions that it stopped can continue at once.'}</p>
    </FormDialog>
  );
}
