import { calledProviders, cloudUrlForm, ownProvider } from '@signalbox/contract';
import { X } from 'lucide-react';
import { useRef } from 'react';
import { Button } from '../../ui/button.tsx';
import { useToast } from '../../ui/toast.tsx';
import { useDraft } from './draft.tsx';
import { DraftJson, DraftSelect, DraftText, textOf } from './fields.tsx';
import { Folded } from './folded.tsx';
import { isRecord, modelOf } from './model.ts';
import { ModelPicker } from './model-picker.tsx';
import { ServerSelect } from './server-select.tsx';

const PATH = 'model.fallbacks';
const MAX_FALLBACKS = 4;

/** The models that take over while the agent's own is unavailable. Their settings are edited as JSON. */
export function FallbacksForm() {
  const draft = useDraft();
  const toast = useToast();
  const adding = useRef<HTMLButtonElement>(null);
  const given = draft.get(PATH) ?? [];
  if (!Array.isArray(given)) return <DraftJson path={PATH} label="Fallbacks" hint="A list." />;
  const value: readonly unknown[] = given;

  function add() {
    if (typeof draft.get('model') === 'string') draft.set('model', modelOf(draft.get('model')));
    draft.set(`${PATH}[${value.length}]`, { provider: calledProviders[1], model: '' }, null);
  }
  function remove(index: number) {
    const rest = value.filter((_, other) => other !== index);
    draft.set(PATH, rest.length === 0 ? undefined : rest);
    toast(`Fallback ${index + 1} removed`);
    adding.current?.focus();
  }

  return (
    <fieldset className="fallbacks" data-path={PATH}>
      <legend>Fallbacks</legend>
      <p className="quiet small">
        Called in this order while the agent’s own model is unavailable, out of quota or refuses its key.
      </p>
      <ol className="stack">
        {value.map((model, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: its fields have no state of their own, and fallbacks have no ids
          <li key={index}>
            <fieldset className="fallbacks fallback">
              <legend>Fallback {index + 1}</legend>
              <Fallback path={`${PATH}[${index}]`} model={isRecord(model) ? model : {}} />
              <Button
                look="bare"
                small
                className="icon"
                onClick={() => remove(index)}
                aria-label={`Remove fallback ${index + 1}`}
              >
                <X aria-hidden="true" />
              </Button>
            </fieldset>
          </li>
        ))}
      </ol>
      {value.length < MAX_FALLBACKS && (
        <div>
          <Button small ref={adding} onClick={add}>
            Add a fallback
          </Button>
        </div>
      )}
    </fieldset>
  );
}

function Fallback({ path, model }: { path: string; model: Record<string, unknown> }) {
  const draft = useDraft();
  const provider = textOf(model.provider);
  const isOwn = ownProvider(provider) !== undefined;
  const form = cloudUrlForm(provider);
  const name = `${path}.model`;
  return (
    <>
      <div className="provider-and-model">
        <DraftSelect
          path={`${path}.provider`}
          label="Provider"
          options={calledProviders.map((value) => ({ value, label: value }))}
        />
        <ModelPicker
          model={model}
          path={name}
          error={draft.errorAt(name)}
          hint="Choose a model, or type the provider’s name."
          onType={(value) => draft.set(name, value)}
          onChoose={(next, value) =>
            // The address and the key are those of the other provider.
            next === provider ? draft.set(name, value) : draft.set(path, { provider: next, model: value })
          }
        />
      </div>
      {provider !== 'scripted' && !isOwn && (
        <div className="provider-and-model">
          {!form && <ServerSelect path={path} />}
          <DraftText path={`${path}.baseUrl`} label="Base URL" mono hint={form} />
        </div>
      )}
      {provider !== 'scripted' && (
        <Folded
          title={isOwn ? 'URL and key' : 'Key'}
          fields={[`${path}.apiKeySecret`, ...(isOwn ? [`${path}.baseUrl`] : [])]}
          summary={
            [isOwn && textOf(model.baseUrl), textOf(model.apiKeySecret)].filter(Boolean).join(' · ') || 'Defaults'
          }
        >
          <div className="columns">
            {isOwn && (
              <DraftText path={`${path}.baseUrl`} label="Base URL" optional mono hint="Only needed for a gateway." />
            )}
            <DraftText path={`${path}.apiKeySecret`} label="API key secret" optional mono />
          </div>
        </Folded>
      )}
    </>
  );
}
