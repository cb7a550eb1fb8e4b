// The filters of the list of sessions. They are in the URL, so that they can be bookmarked and shared.
import { agentOption, useAgents } from '../../data/agent-names.ts';
import { sessionIdPattern, withFilter } from '../../lib/search-params.ts';
import { type Filter, FilterBar } from '../../ui/filter-bar.tsx';
import { TimeRange } from '../../ui/time-range.tsx';
import { MAX_METADATA, type SessionSearch, sessionStatuses } from './search-params.ts';
import { SessionCount } from './session-count.tsx';

const statuses = sessionStatuses.map((value) => ({ value, label: value }));

export function Filters({
  search,
  onChange,
}: {
  search: SessionSearch;
  onChange: (change: (search: SessionSearch) => SessionSearch, more?: { isTyping: boolean }) => void;
}) {
  const agents = useAgents().data ?? [];
  const { metadata = {} } = search;
  function set<K extends keyof SessionSearch>(name: K, value: SessionSearch[K] | '') {
    onChange((before) => withFilter(before, name, value));
  }
  function setMetadata(key: string, value: string | undefined) {
    onChange((before) => {
      const { [key]: _, ...others } = before.metadata ?? {};
      const next = value === undefined ? others : { ...others, [key]: value };
      return withFilter(before, 'metadata', Object.keys(next).length > 0 ? next : '');
    });
  }
  const text = (label: string, name: 'endUserId' | 'parentSessionId' | 'forkedFromSessionId', more = {}): Filter => ({
    label,
    value: search[name],
    onChange: (value) => set(name, value ?? ''),
    ...more,
  });
  const id = { pattern: sessionIdPattern, refusal: 'Enter the whole id of a session.', placeholder: 'ses_…' };
  const filters: Filter[] = [
    {
      label: 'Status',
      value: search.status,
      options: statuses,
      onChange: (value) => set('status', (value as SessionSearch['status']) ?? ''),
    },
    {
      label: 'Last turn',
      value: search.hasError && 'failed',
      options: [{ value: 'failed', label: 'failed' }],
      onChange: (value) => set('hasError', value ? true : ''),
    },
    {
      label: 'Agent',
      value: search.agentId,
      options: agents.map(agentOption),
      onChange: (value) => set('agentId', value ?? ''),
    },
    {
      label: 'Drafts',
      value: search.drafts,
      options: [
        { value: 'none', label: 'left out' },
        { value: 'only', label: 'shown alone' },
      ],
      onChange: (value) => set('drafts', (value as SessionSearch['drafts']) ?? ''),
    },
    text('End user', 'endUserId', { placeholder: 'Your id of the user' }),
    text('Parent', 'parentSessionId', id),
    text('Fork of', 'forkedFromSessionId', id),
    ...Object.entries(metadata).map(
      ([key, value]): Filter => ({ label: key, value, onChange: (next) => setMetadata(key, next) }),
    ),
  ];
  if (Object.keys(metadata).length < MAX_METADATA) {
    filters.push({
      label: 'Metadata',
      value: undefined,
      pattern: /^[^=\s][^=]*=/s,
      refusal: 'Enter key=value.',
      placeholder: 'customer=17',
      onChange: (pair = '') => {
        const [, key, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/s.exec(pair) ?? [];
        if (key !== undefined) setMetadata(key, value);
      },
    });
  }
  return (
    <FilterBar
      search={{
        label: 'Search messages, end users, metadata, ids',
        value: search.q ?? '',
        onChange: (q) => onChange((before) => withFilter(before, 'q', q), { isTyping: true }),
      }}
      filters={filters}
    >
      <TimeRange value={search.range} onChange={(range) => set('range', range ?? '')} isOptional />
      <SessionCount search={search} />
    </FilterBar>
  );
}
