import {
  cloudUrlForm,
  type DescribedModel,
  modelFacts,
  ownProvider,
  type ProviderName,
  providerFacts,
  providers,
  usualKeyName,
} from '@signalbox/contract';
import { type ReactNode, useRef } from 'react';
import { Select, TextField } from '../../ui/field.tsx';
import { useDraft } from './draft.tsx';
import { FallbacksForm } from './fallbacks-form.tsx';
import { DraftJson, DraftNumber, textOf, withPresent } from './fields.tsx';
import { Folded } from './folded.tsx';
import { isRecord, modelName, modelOf } from './model.ts';
import { ModelPicker } from './model-picker.tsx';
import { ServerSelect } from './server-select.tsx';

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

  function selectProvider(next: string, name = '') {
    left.current.set(provider, model);
    const { script: _, ...settings } = isRecord(model.settings) ? model.settings : {};
    const begun = {
      provider: next,
      ...(next === 'worker' ? { queue: '' } : { model: '' }),
      ...(Object.keys(settings).length > 0 && { settings }),
      ...(next !== 'worker' && model.fallbacks !== undefined && { fallbacks: model.fallbacks }),
      ...(model.compaction !== undefined && { compaction: model.compaction }),
    };
    const chosen = (left.current.get(next) ?? begun) as Record<string, unknown>;
    draft.set('model', name === '' ? chosen : { ...chosen, model: name }, 'model.provider');
  }
  function setName(name: string) {
    if (typeof draft.get('model') === 'string') draft.set('model', model);
    draft.set('model.model', name);
  }
  const isOwn = ownProvider(provider) !== undefined;
  const form = cloudUrlForm(provider);
  const address = (
    <ModelText
      name="baseUrl"
      label="Base URL"
      optional
      hint={
        isOwn
          ? 'Only needed for a gateway. Leave empty to use the provider’s own URL.'
          : form
            ? cloudHint(form)
            : 'Include /v1. The URL must use https and a public address, unless the operator allows others.'
      }
    />
  );

  return (
    <>
      <div className="provider-and-model">
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
          <ModelPicker
            model={model}
            path="model.model"
            error={draft.errorAt('model.model')}
            hint={
              provider === 'scripted'
                ? 'Any name. The script responds.'
                : 'Choose a model, or type the provider’s name.'
            }
            onType={setName}
            onChoose={(next, name) => (next === provider ? setName(name) : selectProvider(next, name))}
          />
        )}
      </div>
      {provider === 'scripted' && <SettingsJson provider={provider} />}
      {isAsked(provider) && !isOwn && (
        <div className="provider-and-model">
          {!form && <ServerSelect path="model" />}
          {address}
        </div>
      )}
      {provider !== 'worker' && <FallbacksForm />}
      <Folded title="Key, settings and context" fields={detailFields} summary={detailText(model)}>
        {isAsked(provider) && (
          <>
            {isOwn && address}
            <ModelText name="apiKeySecret" label="API key secret" optional hint={keyHint(provider)} />
          </>
        )}
        <ModelSettings provider={provider} />
        <CompactionJson provider={provider} />
      </Folded>
    </>
  );
}

const detailFields = ['apiKeySecret', 'settings', 'contextTokens', 'input', 'compaction'].map(
  (name) => `model.${name}`,
);

/** What of the details is set. */
function detailText({ baseUrl, apiKeySecret, settings, compaction }: Record<string, unknown>): string {
  const { script: _, ...own } = isRecord(settings) ? settings : {};
  const set = [
    baseUrl !== undefined && 'own URL',
    apiKeySecret !== undefined && `key in ${textOf(apiKeySecret)}`,
    ...Object.entries(own).map(([name, value]) => `${name} ${textOf(value)}`),
    compaction !== undefined && `summaries by ${modelName(compaction)}`,
  ].filter(Boolean);
  return set.length === 0 ? 'Defaults' : set.join(' · ');
}

/** The form with what the customer replaces set apart. */
function cloudHint(form: string): ReactNode {
  return (
    <>
      <code>{form}</code>, with your own names in place of the capitals, or the URL of a gateway.
    </>
  );
}

function keyHint(provider: string): ReactNode {
  const known = usualKeyName(provider);
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
      {provider !== 'scripted' && <SettingsJson provider={provider} />}
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

/** The model that summarizes older messages. */
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
          JSON, such as <code>{`{ "provider": "google", "model": "${providerFacts.google.own.exampleModel}" }`}</code>.
          It summarizes older messages of long conversations.{' '}
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

/** A text field of the model. Turns the short form into an object. */
function ModelText({
  name,
  label,
  hint,
  optional,
}: {
  name: string;
  label: string;
  hint: ReactNode;
  optional?: boolean;
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
      value={textOf(model[name])}
      error={draft.errorAt(path)}
      onChange={({ currentTarget: { value } }) => {
        if (typeof draft.get('model') === 'string') draft.set('model', model);
        draft.set(path, optional && value === '' ? undefined : value);
      }}
    />
  );
}
