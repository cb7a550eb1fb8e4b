// The dialogs to set a budget and to delete one.
import type { OrganizationBudget } from '@signalbox/client';
import { useState } from 'react';
import { agentOption, useAgents } from '../../data/agent-names.ts';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Checkbox, Select, TextField } from '../../ui/field.tsx';
import { refusal } from '../../ui/form.ts';
import { fieldError } from '../../ui/notice.tsx';
import { numberIn } from '../../ui/number.ts';

const hasName = (budgets: readonly OrganizationBudget[], name: string) => budgets.some((one) => one.name === name);

export function SetBudgetDialog({
  budget,
  budgets,
  onClose,
}: {
  budget?: OrganizationBudget;
  /** All that there are. */
  budgets: readonly OrganizationBudget[];
  onClose: () => void;
}) {
  const { data: agents = [] } = useAgents();
  const environments = useEnvironmentNames() ?? [];
  const [draft, setDraft] = useState({
    name: budget?.name ?? (hasName(budgets, 'monthly') ? '' : 'monthly'),
    limit: budget ? String(budget.limitUsd) : '',
    period: budget?.period ?? 'month',
    environment: budget?.environment ?? '',
    agentId: budget?.agentId ?? '',
    thresholds: (budget?.thresholds ?? [50, 80, 100]).join(', '),
    stop: budget?.stop ?? false,
  });
  const change = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }));
  const set = useApiMutation(
    async (client, { name: typed, limit, period, environment, agentId, thresholds, stop }: typeof draft) => {
      const name = typed.trim();
      if (name === '') throw refusal('budgetName', 'must not be empty');
      const params = {
        limitUsd: numberIn(limit) as number,
        period,
        stop,
        thresholds: thresholds.split(',').flatMap((text) => numberIn(text.replace('%', '')) ?? []),
        ...(environment && { environment }),
        ...(agentId && { agentId }),
        ...(budget?.keyId && { keyId: budget.keyId }),
      };
      return await (budget ? client.budgets.set(name, params) : client.budgets.create(name, params));
    },
    ['budgets'],
  );
  const errorFor = (path: string) => fieldError(set.error, path);
  return (
    <FormDialog
      title={budget ? `Edit ${budget.name}` : 'Create budget'}
      action={budget ? 'Save budget' : 'Create budget'}
      done={budget ? 'Budget saved' : 'Budget created'}
      beside={['budgetName', 'limitUsd', 'thresholds']}
      onClose={onClose}
      submit={() => set.mutateAsync(draft)}
    >
      {!budget && (
        <TextField
          label="Name"
          name="name"
          value={draft.name}
          hint="Lower-case letters, digits, “_” and “-”."
          error={errorFor('budgetName')}
          onChange={({ currentTarget: { value } }) => change({ name: value })}
        />
      )}
      <TextField
        label="Limit in US dollars"
        name="limit"
        inputMode="decimal"
        value={draft.limit}
        error={errorFor('limitUsd')}
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
        error={errorFor('thresholds')}
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

export function DeleteBudgetDialog({
  budget: { name, stop },
  onClose,
}: {
  budget: OrganizationBudget;
  onClose: () => void;
}) {
  const remove = useApiMutation((client, _: undefined) => client.budgets.delete(name), ['budgets']);
  return (
    <FormDialog
      title={`Delete ${name}?`}
      action="Delete budget"
      done="Budget deleted"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>Its alerts are deleted as well. {stop && 'Sessions that it stopped can continue at once.'}</p>
    </FormDialog>
  );
}
