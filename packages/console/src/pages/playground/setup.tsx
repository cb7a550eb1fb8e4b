// The definition of a column: model, instructions, tools, and everything else as JSON.
import { CreateAgent, calledProviders } from '@signalbox/contract';
import { useState } from 'react';
import { CodeEditor } from '../../ui/code-editor.tsx';
import { Select, TextField } from '../../ui/field.tsx';
import type { Definition } from '../agents/definition.ts';
import { readJson } from '../agents/draft.tsx';
import { modelOf } from '../agents/model.ts';
import { ModelPicker } from '../agents/model-picker.tsx';
import type { Column } from './state.ts';
import { ToolChoices } from './tools.tsx';

const providers = [...calledProviders, 'worker'].map((value) => ({ value, label: value }));

export function Setup({
  column,
  environment,
  onChange,
}: {
  column: Column;
  environment: string;
  onChange: (change: Partial<Column>) => void;
}) {
  const { definition } = column;
  const [isOpen, setOpen] = useState(false);
  const set = (change: Definition) => onChange({ definition: { ...definition, ...change } });
  const model = modelOf(definition.model);
  const isWorker = model.provider === 'worker';
  return (
    <div className="stack">
      <div className="playground-model">
        <Select
          label="Provider"
          value={model.provider ?? ''}
          options={providers}
          onChange={({ currentTarget: { value } }) => set({ model: modelWith(model, value) })}
        />
        {isWorker ? (
          <TextField
            label="Queue"
            mono
            spellCheck={false}
            value={String(model.queue ?? '')}
            onChange={({ currentTarget: { value } }) => set({ model: { ...model, queue: value } })}
          />
        ) : (
          <ModelPicker
            model={model}
            path="model.model"
            error={undefined}
            {...(environment !== '' && { runsIn: environment })}
            hint={
              model.provider === 'scripted' ? 'Any name. The script responds.' : 'Choose a model, or type its name.'
            }
            onType={(name) => set({ model: { ...model, model: name } })}
            onChoose={(provider, name) => set({ model: { ...modelWith(model, provider), model: name } })}
          />
        )}
      </div>
      <CodeEditor
        label="Instructions"
        language="markdown"
        lines={5}
        mostLines={16}
        value={String(definition.instructions ?? '')}
        onChange={(instructions) => set({ instructions })}
      />
      <section className="stack tight" aria-label="Tools">
        <h3>Tools</h3>
        <ToolChoices column={column} onChange={(tools) => onChange({ tools })} />
      </section>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>Settings and definition as JSON</summary>
        {isOpen && <DefinitionJson definition={definition} onChange={(next) => onChange({ definition: next })} />}
      </details>
    </div>
  );
}

/** What belongs to another provider is removed: the service would refuse it. */
function modelWith(model: ReturnType<typeof modelOf>, provider: string): Definition {
  if (provider === model.provider) return model;
  const { script: _, ...settings } = (model.settings ?? {}) as Record<string, unknown>;
  const kept = Object.keys(settings).length > 0 ? { settings } : {};
  return provider === 'worker'
    ? { provider, queue: String(model.model ?? model.queue ?? '') }
    : { provider, model: String(model.model ?? model.queue ?? ''), ...kept };
}

function DefinitionJson({ definition, onChange }: { definition: Definition; onChange: (next: Definition) => void }) {
  const saved = JSON.stringify(definition, null, 2);
  const [typed, setTyped] = useState<string>();
  const read = typed === undefined ? undefined : readJson(typed, true);
  // The text stays as it is typed, until the definition is changed elsewhere.
  const isTyped = read && ('message' in read || JSON.stringify(read.value, null, 2) === saved);
  return (
    <CodeEditor
      label="Definition"
      language="json"
      schema={CreateAgent as object as Record<string, unknown>}
      lines={16}
      mostLines={24}
      value={isTyped ? typed! : saved}
      error={read && 'message' in read ? `${read.message}. The last valid definition runs.` : undefined}
      onChange={(text) => {
        setTyped(text);
        const next = readJson(text, true);
        if ('value' in next) onChange(next.value as Definition);
      }}
    />
  );
}
