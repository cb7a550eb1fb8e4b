import {
  type DescribedModel,
  modelFacts,
  ownProvider,
  type ProviderName,
  providerFacts,
  providers,
} from '@signalbox/contract';
import { type ReactNode, useId, useRef } from 'react';
import { Select, TextField } from '../../ui/field.tsx';
import { useDraft } from './draft.tsx';
import { FallbacksForm } from './fallbacks-form.tsx';
import { DraftJson, DraftNumber, textOf, withPresent } from './fields.tsx';
import { isRecord, modelOf } from './model.ts';
import { ModelNote, ModelOptions, useModelList } from './model-names.tsx';

const isAsked = (provider: string) => provider !== 'scripted' && provider !== 'worker';
function labelOf(name: ProviderName): string {
  const facts = providerFacts[name];
  return 'note' in facts ? `${name}: ${facts.note}` : name;
}

export function ModelForm() {
  const draft = useDraft();
  const model = modelOf(draft.get('model'));
  const provider = textOf(model.provider);
  // The model name, address and key belong to one provider; they are restored when the user selects it again.
  const left = useRef(new Map<string, unknown>());

  function selectProvider(next: string) {
    left.current.set(provider, model);
    const { script: _, ...settings } = isRecord(model.settings) ? model.settings : {};
    const begun = {
      provider: next,
      ...(next === 'worker' ? { queue: '' } : { model: '' }),
      ...(Object.keys(settings).length > 0 && { settings }),
      ...(next !== 'worker' && model.fallbacks !== undefined && { fallbacks: model.fallbacks }),
      ...(model.compaction !== undefined && { compaction: model.compaction }),
    };
    draft.set('model', left.current.get(next) ?? begun, 'model.provider');
  }

  return (
    <>
      <Select
        label="Provider"
        data-path="model.provider"
        value={provider}
        error={draft.errorAt('model.provider') ?? draft.errorAt('model')}
        onChange={({ currentTarget }) => selectProvider(currentTarget.value)}
        options={withPresent(
          providers.map((value) => ({ value, label: labelOf(value) })),
          provider,
        )}
      />
      {provider === 'worker' ? (
        <ModelText
          name="queue"
          label="Queue"
          hint="The queue from which your program claims this agent’s turns, such as support-agent."
        />
      ) : (
        <ModelName provider={provider} />
      )}
      {isAsked(provider) && (
        <>
          <ModelText
            name="baseUrl"
            label="Base URL"
            optional
            hint={
              ownProvider(provider) === undefined
                ? 'Include /v1. The URL must use https and a public address, unless the operator allows others.'
                : 'Only needed for a gateway. Leave empty to use the provider’s own URL.'
            }
          />
          <ModelText name="apiKeySecret" label="API key secret" optional hint={keyHint(provider)} />
        </>
      )}
      <ModelSettings provider={provider} />
      {provider !== 'worker' && <FallbacksForm />}
      <CompactionJson provider={provider} />
    </>
  );
}

function keyHint(provider: string): ReactNode {
  const known = ownProvider(provider)?.keyName;
  return (
    <>
      {known ? (
        <>
          The name of the environment’s secret that contains the provider’s API key. Default: <code>{known}</code>.
        </>
      ) : (
        'The name of the environment’s secret that contains the API key, if the server needs one.'
      )}{' '}
      An admin sets it under Environments. It is sent only to the hosts that the secret allows.
    </>
  );
}

function ModelSettings({ provider }: { provider: string }) {
  const draft = useDraft();
  // The short form, `provider/model`, has none to edit.
  if (typeof draft.get('model') === 'string') return null;
  return (
    <>
      {isAsked(provider) && <ModelFacts />}
      <SettingsJson provider={provider} />
    </>
  );
}

/** What the model takes, for models that Signalbox does not know. */
function ModelFacts() {
  const { contextTokens: _, input: __, ...model } = modelOf(useDraft().get('model'));
  const known = modelFacts(model as unknown as DescribedModel);
  return (
    <>
      <DraftNumber
        path="model.contextTokens"
        label="Context window (tokens)"
        hint={
          known.contextTokens === null
            ? 'Unknown for this model. Long conversations are compacted in time if you enter it.'
            : `Leave empty for ${known.contextTokens.toLocaleString('en')}, the window of this model.`
        }
      />
      <DraftJson
        path="model.input"
        label="Files that the model takes"
        lines={1}
        hint={
          <>
            JSON, a list of <code>image</code>, <code>pdf</code> and <code>audio</code>.{' '}
            {known.input === null ? 'Unknown for this model.' : `Leave empty for ${JSON.stringify(known.input)}.`}
          </>
        }
      />
    </>
  );
}

/** The model that summarises older messages. */
function CompactionJson({ provider }: { provider: string }) {
  const draft = useDraft();
  if (typeof draft.get('model') === 'string') return null;
  return (
    <DraftJson
      path="model.compaction"
      label="Model for summaries"
      lines={3}
      hint={
        <>
          JSON, such as <code>{'{ "provider": "openai", "model": "gpt-5-mini" }'}</code>. It summarises older messages
          of long conversations.{' '}
          {provider === 'worker' ? 'Without one, they are left out.' : 'Leave empty for the agent’s own model.'}
        </>
      }
    />
  );
}

function SettingsJson({ provider }: { provider: string }) {
  return (
    <DraftJson
      path="model.settings"
      label="Settings"
      lines={provider === 'scripted' ? 10 : 4}
      hint={
        provider === 'scripted' ? (
          <>
            JSON. <code>script</code> has one step per model call; the last step repeats. Text can contain{' '}
            <code>{'{{input}}'}</code> and <code>{'{{lastToolResult}}'}</code>.
          </>
        ) : (
          <>
            JSON. All fields are optional: <code>temperature</code>, <code>topP</code>, <code>seed</code>,{' '}
            <code>stopSequences</code>, <code>reasoning</code>.
          </>
        )
      }
    />
  );
}

/** The name of the model, chosen from the provider's list or typed. */
function ModelName({ provider }: { provider: string }) {
  const model = modelOf(useDraft().get('model'));
  const { list, environment, ask } = useModelList(model);
  const id = useId();
  const usual = provider === 'scripted' ? 'Any name. The script responds.' : 'The provider’s name for the model.';
  return (
    <>
      <ModelText
        name="model"
        label="Model"
        options={id}
        onFocus={ask}
        hint={
          list && environment ? <ModelNote list={list} name={textOf(model.model)} environment={environment} /> : usual
        }
      />
      <ModelOptions id={id} models={list?.models ?? []} />
    </>
  );
}

/** A text field of the model. Turns the short form into an object. */
function ModelText({
  name,
  label,
  hint,
  optional,
  options,
  onFocus,
}: {
  name: string;
  label: string;
  hint: ReactNode;
  optional?: boolean;
  /** The id of a list of values. */
  options?: string;
  onFocus?: () => void;
}) {
  const draft = useDraft();
  const model = modelOf(draft.get('model'));
  const path = `model.${name}`;
  return (
    <TextField
      mono
      label={label}
      hint={hint}
      data-path={path}
      spellCheck={false}
      list={options}
      onFocus={onFocus}
      value={textOf(model[name])}
      error={draft.errorAt(path)}
      onChange={({ currentTarget: { value } }) => {
        if (typeof draft.get('model') === 'string') draft.set('model', model);
        draft.set(path, optional && value === '' ? undefined : value);
      }}
    />
  );
}
