// Which Sessions are listed. All of it stands in the address, so that it can be kept and sent.
import type { SessionStatus } from '@signalbox/client';
import { type FormEvent, useState } from 'react';
import { useEnvironmentNames } from '../../environment-names.ts';
import { Button } from '../../ui/button.tsx';
import { Select, TextField } from '../../ui/field.tsx';
import { PlainText } from '../../ui/text.tsx';
import { useAgents } from './agent-names.ts';
import { MAX_METADATA, type SessionSearch, sessionStatuses } from './search.ts';

export function Filters({ search, onSearch }: { search: SessionSearch; onSearch: (search: SessionSearch) => void }) {
  const agents = useAgents().data ?? [];
  const environments = useEnvironmentNames() ?? [];
  const { status = '', agentId = '', environment = '', metadata = {} } = search;

  function set(change: { [K in keyof SessionSearch]: SessionSearch[K] | '' | undefined }) {
    const next = Object.entries({ ...search, ...change }).filter(([, value]) => value !== '' && value !== undefined);
    onSearch(Object.fromEntries(next) as SessionSearch);
  }
  function setMetadata(next: Record<string, string>) {
    set({ metadata: Object.keys(next).length > 0 ? next : undefined });
  }

  return (
    <div className="stack tight">
      <search className="filters" aria-label="Filter the Sessions">
        <Select
          label="Status"
          value={status}
          onChange={(event) => set({ status: event.currentTarget.value as SessionStatus | '' })}
          options={[{ value: '', label: 'All' }, ...sessionStatuses.map((value) => ({ value, label: value }))]}
        />
        <Select
          label="Agent"
          value={agentId}
          onChange={(event) => set({ agentId: event.currentTarget.value })}
          options={withOwn(agentId, [
            { value: '', label: 'All' },
            ...agents.map((agent) => ({
              value: agent.agentId,
              label: agent.archivedAt === null ? agent.name : `${agent.name} (archived)`,
            })),
          ])}
        />
        <Select
          label="Environment"
          value={environment}
          onChange={(event) => set({ environment: event.currentTarget.value })}
          options={withOwn(environment, [
            { value: '', label: 'All' },
            ...environments.map((value) => ({ value, label: value })),
          ])}
        />
        <MetadataField
          onAdd={(key, value) => setMetadata({ ...metadata, [key]: value })}
          isFull={Object.keys(metadata).length >= MAX_METADATA}
        />
      </search>
      {(Object.keys(metadata).length > 0 || search.parentSessionId) && (
        <ul className="chosen row">
          {search.parentSessionId && (
            <li>
              <Button small onClick={() => set({ parentSessionId: undefined })}>
                Children of …{search.parentSessionId.slice(-6)} <span aria-hidden="true">×</span>
                <span className="visually-hidden">: remove</span>
              </Button>
            </li>
          )}
          {Object.entries(metadata).map(([key, value]) => (
            <li key={key}>
              <Button
                small
                onClick={() => setMetadata(Object.fromEntries(Object.entries(metadata).filter(([one]) => one !== key)))}
              >
                <PlainText text={`${key}=${value}`} /> <span aria-hidden="true">×</span>
                <span className="visually-hidden">: remove</span>
              </Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function MetadataField({ onAdd, isFull }: { onAdd: (key: string, value: string) => void; isFull: boolean }) {
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  function submit(event: FormEvent) {
    event.preventDefault();
    const [, key, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/s.exec(text) ?? [];
    if (key === undefined) return setError('Write it as key=value.');
    if (isFull) return setError(`At most ${MAX_METADATA}.`);
    setError(undefined);
    setText('');
    onAdd(key, value!);
  }
  return (
    <form onSubmit={submit} className="metadata-filter">
      <TextField
        label="Metadata"
        placeholder="customer=17, then Enter"
        value={text}
        error={error}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

/** What the address names is shown as chosen also where the list does not have it. */
function withOwn(value: string, options: { value: string; label: string }[]) {
  return options.some((option) => option.value === value) ? options : [...options, { value, label: value }];
}
