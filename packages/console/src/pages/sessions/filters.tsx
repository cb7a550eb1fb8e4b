// The filters of the list of sessions. They are in the URL, so that they can be bookmarked and shared.
import { type FormEvent, useState } from 'react';
import { AgentFilter, EnvironmentFilter } from '../../filters.tsx';
import { withFilter } from '../../search-params.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { FilterSelect } from '../../ui/filter.tsx';
import { PlainText } from '../../ui/text.tsx';
import { MAX_METADATA, type SessionSearch, sessionStatuses } from './search-params.ts';

const statuses = sessionStatuses.map((value) => ({ value, label: value }));

export function Filters({ search, onSearch }: { search: SessionSearch; onSearch: (search: SessionSearch) => void }) {
  const { metadata = {} } = search;
  function set<K extends keyof SessionSearch>(name: K, value: SessionSearch[K] | '') {
    onSearch(withFilter(search, name, value));
  }
  function setMetadata(next: Record<string, string>) {
    set('metadata', Object.keys(next).length > 0 ? next : '');
  }

  return (
    <div className="stack tight">
      <search className="filters" aria-label="Filter sessions">
        <FilterSelect
          label="Status"
          value={search.status}
          options={statuses}
          onChange={(status) => set('status', status)}
        />
        <AgentFilter value={search.agentId} onChange={(agentId) => set('agentId', agentId)} />
        <EnvironmentFilter value={search.environment} onChange={(environment) => set('environment', environment)} />
        <EndUserField onChoose={(endUserId) => set('endUserId', endUserId)} />
        <MetadataField
          onAdd={(key, value) => setMetadata({ ...metadata, [key]: value })}
          isFull={Object.keys(metadata).length >= MAX_METADATA}
        />
      </search>
      {(Object.keys(metadata).length > 0 || search.parentSessionId || search.endUserId) && (
        <ul className="chosen row">
          {search.parentSessionId && (
            <li>
              <Button small onClick={() => set('parentSessionId', '')}>
                Children of …{search.parentSessionId.slice(-6)} <span aria-hidden="true">×</span>
                <span className="visually-hidden">: remove</span>
              </Button>
            </li>
          )}
          {search.endUserId && (
            <li>
              <Button small onClick={() => set('endUserId', '')}>
                End user <PlainText text={search.endUserId} /> <span aria-hidden="true">×</span>
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

function EndUserField({ onChoose }: { onChoose: (endUserId: string) => void }) {
  const [text, setText] = useState('');
  function submit(event: FormEvent) {
    event.preventDefault();
    if (text === '') return;
    setText('');
    onChoose(text);
  }
  return (
    <form onSubmit={submit} className="metadata-filter">
      <TextField
        label="End user"
        placeholder="Id, then Enter"
        maxLength={200}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

function MetadataField({ onAdd, isFull }: { onAdd: (key: string, value: string) => void; isFull: boolean }) {
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  function submit(event: FormEvent) {
    event.preventDefault();
    const [, key, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/s.exec(text) ?? [];
    if (key === undefined) return setError('Enter key=value.');
    if (isFull) return setError(`You can filter by up to ${MAX_METADATA} values.`);
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
