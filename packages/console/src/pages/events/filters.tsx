import type { EventType } from '@signalbox/client';
import { useEffect, useState } from 'react';
import { eventKinds } from '../../event-text.ts';
import { EnvironmentFilter } from '../../filters.tsx';
import { sessionIdPattern, withFilter } from '../../search-params.ts';
import { Button } from '../../ui/button.tsx';
import { Select, TextField } from '../../ui/field.tsx';
import { FilterField } from '../../ui/filter.tsx';
import { instantOf, localOf } from '../../ui/time.tsx';
import type { EventsSearch } from './search-params.ts';

const kinds = [
  { value: '', label: 'All types' },
  ...Object.entries(eventKinds).map(([value, { label }]) => ({ value, label })),
];

/** The filters of the event log, which are in the URL. */
export function Filters({ filters, onChange }: { filters: EventsSearch; onChange: (filters: EventsSearch) => void }) {
  function set<K extends keyof EventsSearch>(name: K, value: EventsSearch[K] | '') {
    onChange(withFilter(filters, name, value));
  }
  const { actorId, resourceId, sessionId, since, until } = filters;
  const more = [actorId, resourceId, sessionId, since, until].filter((one) => one !== undefined).length;
  const [open, setOpen] = useState(more > 0);
  useEffect(() => {
    if (more > 0) setOpen(true);
  }, [more]);
  return (
    <search className="stack event-filters">
      <div className="filters">
        <Select
          label="Type"
          options={kinds}
          value={filters.type ?? ''}
          onChange={(event) => set('type', event.currentTarget.value as EventType | '')}
        />
        <EnvironmentFilter value={filters.environment} onChange={(environment) => set('environment', environment)} />
        {Object.keys(filters).length > 0 && (
          <Button look="bare" onClick={() => onChange({})}>
            Clear filters
          </Button>
        )}
      </div>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>More filters</summary>
        <div className="filters more">
          <FilterField
            label="Actor"
            placeholder="key_… or usr_…"
            value={actorId ?? ''}
            onChange={(value) => set('actorId', value)}
          />
          <FilterField
            label="Resource"
            placeholder="agt_…, whs_…, key_…"
            value={resourceId ?? ''}
            onChange={(value) => set('resourceId', value)}
          />
          <FilterField
            label="Session"
            placeholder="ses_…"
            value={sessionId ?? ''}
            pattern={sessionIdPattern}
            refusal="A session ID starts with ses_"
            onChange={(value) => set('sessionId', value)}
          />
          <TextField
            label="Since"
            type="datetime-local"
            step={1}
            value={localOf(since)}
            onChange={(event) => set('since', instantOf(event.currentTarget.value))}
          />
          <TextField
            label="Until"
            type="datetime-local"
            step={1}
            value={localOf(until)}
            onChange={(event) => set('until', instantOf(event.currentTarget.value))}
          />
        </div>
      </details>
    </search>
  );
}
