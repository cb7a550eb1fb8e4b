// How often an environment calls models, and the calls that wait.
import type { Environment, ModelLimit, SetModelLimit } from '@signalbox/client';
import { calledProviders, ownProviders } from '@signalbox/contract';
import { Gauge } from 'lucide-react';
import { useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { TextField } from '../../ui/field.tsx';
import { refusal } from '../../ui/form.ts';
import { Menu } from '../../ui/menu.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { numberIn } from '../../ui/number.ts';
import { type Column, loaded, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

type Dialog = { what: 'set'; limit?: ModelLimit } | { what: 'remove'; limit: ModelLimit };

export function ModelLimits({ environment }: { environment: Environment }) {
  const { may } = useOrganization();
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const { name, modelLimits } = environment;
  return (
    <section className="stack" aria-labelledby="model-limits">
      <div className="row apart">
        <h2 id="model-limits">Rate limits for models</h2>
        {may('admin') && <Button onClick={() => setDialog({ what: 'set' })}>Add limit</Button>}
      </div>
      <p className="quiet">
        Calls beyond a limit wait in order instead of being refused by the provider. All nodes share it.
      </p>
      <Table
        name="model-limits"
        caption={`Rate limits of ${name}`}
        query={loaded(modelLimits)}
        columns={columns}
        rowKey={({ model }) => model}
        {...(may('admin') && {
          actions: (limit: ModelLimit) => (
            <Menu
              label={`Actions for the limit of ${modelText(limit)}`}
              items={[
                { label: 'Change limit', onSelect: () => setDialog({ what: 'set', limit }) },
                { label: 'Remove', danger: true, onSelect: () => setDialog({ what: 'remove', limit }) },
              ]}
            />
          ),
        })}
        empty={
          <EmptyState icon={Gauge} title="No limits">
            Each call is sent to its provider at once.
          </EmptyState>
        }
      />
      {dialog?.what === 'set' && (
        <SetLimit environment={environment} onClose={close} {...(dialog.limit && { limit: dialog.limit })} />
      )}
      {dialog?.what === 'remove' && <RemoveLimit environment={environment} limit={dialog.limit} onClose={close} />}
    </section>
  );
}

const columns: Column<ModelLimit>[] = [
  { id: 'model', label: 'Model', cell: (limit) => modelText(limit) },
  {
    id: 'requests',
    label: 'Requests a minute',
    width: '9rem',
    end: true,
    phone: 'under',
    cell: ({ requestsPerMinute }) => numberText(requestsPerMinute),
  },
  {
    id: 'tokens',
    label: 'Tokens a minute',
    width: '9rem',
    end: true,
    phone: 'under',
    cell: ({ tokensPerMinute }) => numberText(tokensPerMinute),
  },
  { id: 'waiting', label: 'Waiting', width: '14rem', phone: 'under-aside', cell: (limit) => <Waiting limit={limit} /> },
];

function Waiting({ limit: { waiting, waitingSince } }: { limit: ModelLimit }) {
  if (waiting === 0 || waitingSince === null) return <span className="quiet">none</span>;
  return (
    <>
      {numberText(waiting)}, the first since <Time at={waitingSince} />
    </>
  );
}

function SetLimit({
  environment: { name, modelLimits },
  limit,
  onClose,
}: {
  environment: Environment;
  limit?: ModelLimit;
  onClose: () => void;
}) {
  const [model, setModel] = useState(limit?.model ?? (modelLimits.length === 0 ? '*' : ''));
  const [requests, setRequests] = useState(String(limit?.requestsPerMinute ?? ''));
  const [tokens, setTokens] = useState(String(limit?.tokensPerMinute ?? ''));
  const others = modelLimits.filter((one) => one.model !== limit?.model).map(given);
  const set = useApiMutation(
    async (client, _: undefined) => {
      if (others.some((one) => one.model === model)) throw refusal('modelLimits[0].model', 'has a limit already');
      const changed = {
        model,
        requestsPerMinute: numberIn(requests) ?? null,
        tokensPerMinute: numberIn(tokens) ?? null,
      };
      // The first, so that errors of its fields have known paths.
      return await client.environments.update(name, { modelLimits: [changed, ...others] });
    },
    ['environments'],
  );
  const errorFor = (field: string) => fieldError(set.error, `modelLimits[0].${field}`);
  return (
    <FormDialog
      title={limit ? `Limit of ${modelText(limit)}` : `Limit calls of a model in ${name}`}
      action="Save limit"
      beside={['modelLimits[0].model', 'modelLimits[0].requestsPerMinute', 'modelLimits[0].tokensPerMinute']}
      onClose={onClose}
      submit={() => set.mutateAsync(undefined)}
    >
      <TextField
        label="Model"
        hint={`The provider and the model, such as ${EXAMPLE}. * limits all models without a limit of their own, together.`}
        mono
        list="limited-models"
        value={model}
        readOnly={limit !== undefined}
        error={errorFor('model')}
        onChange={(event) => setModel(event.currentTarget.value)}
      />
      <datalist id="limited-models">
        {['*', ...ownProviders.map((one) => `${one.name}/${one.exampleModel}`), ...calledProviders.map(prefixOf)].map(
          (value) => (
            <option key={value} value={value} />
          ),
        )}
      </datalist>
      <TextField
        label="Requests a minute"
        hint="Leave empty to limit tokens only."
        inputMode="numeric"
        value={requests}
        error={errorFor('requestsPerMinute')}
        onChange={(event) => setRequests(event.currentTarget.value)}
      />
      <TextField
        label="Tokens a minute"
        hint="What calls read and write. Leave empty to limit requests only."
        inputMode="numeric"
        value={tokens}
        error={errorFor('tokensPerMinute')}
        onChange={(event) => setTokens(event.currentTarget.value)}
      />
      <p className="quiet small">Applies to the calls that wait already.</p>
    </FormDialog>
  );
}

function RemoveLimit({
  environment: { name, modelLimits },
  limit,
  onClose,
}: {
  environment: Environment;
  limit: ModelLimit;
  onClose: () => void;
}) {
  const remove = useApiMutation(
    (client, _: undefined) => {
      const others = modelLimits.filter(({ model }) => model !== limit.model).map(given);
      return client.environments.update(name, { modelLimits: others });
    },
    ['environments'],
  );
  return (
    <FormDialog
      title={`Remove the limit of ${modelText(limit)}?`}
      action="Remove limit"
      done="Limit removed"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>Calls that wait for it are made at once. The provider may refuse some of them.</p>
    </FormDialog>
  );
}

const EXAMPLE = `${ownProviders[0]!.name}/${ownProviders[0]!.exampleModel}`;
const prefixOf = (provider: string) => `${provider}/`;

function given({ model, requestsPerMinute, tokensPerMinute }: ModelLimit): SetModelLimit {
  return { model, requestsPerMinute, tokensPerMinute };
}

function modelText({ model }: Pick<ModelLimit, 'model'>): string {
  return model === '*' ? '* (all other models)' : model;
}

function numberText(value: number | null): string {
  return value === null ? '–' : value.toLocaleString('en');
}
