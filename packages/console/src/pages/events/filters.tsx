import { eventKinds } from '../../lib/event-text.ts';
import { agentIdPattern, sessionIdPattern, withFilter } from '../../lib/search-params.ts';
import { type Filter, FilterBar } from '../../ui/filter-bar.tsx';
import { TimeRange } from '../../ui/time-range.tsx';
import type { EventsSearch } from './search-params.ts';

const types = Object.entries(eventKinds).map(([value, { label }]) => ({ value, label }));

/** The filters of the event log, which are in the URL. */
export function Filters({
  search,
  onChange,
}: {
  search: EventsSearch;
  onChange: (change: (search: EventsSearch) => EventsSearch) => void;
}) {
  function filter(label: string, name: 'type' | 'actorId' | 'resourceId' | 'sessionId' | 'agentId', more = {}): Filter {
    return {
      label,
      value: search[name],
      onChange: (value) => onChange((before) => withFilter(before, name, (value as never) ?? '')),
      ...more,
    };
  }
  return (
    <FilterBar
      filters={[
        filter('Type', 'type', { options: types }),
        filter('Actor', 'actorId', { placeholder: 'key_… or usr_…' }),
        filter('Resource', 'resourceId', { placeholder: 'agt_…, whs_…, key_…' }),
        filter('Session', 'sessionId', {
          pattern: sessionIdPattern,
          refusal: 'Enter the whole id of a session.',
          placeholder: 'ses_…',
        }),
        filter('Agent', 'agentId', {
          pattern: agentIdPattern,
          refusal: 'Enter the whole id of an agent.',
          placeholder: 'agt_…',
        }),
      ]}
    >
      <TimeRange
        value={search.range}
        onChange={(range) => onChange((before) => withFilter(before, 'range', range ?? ''))}
        isOptional
      />
    </FilterBar>
  );
}
