import { useApiQuery } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { filtersOf, type SessionSearch } from './search-params.ts';

/** How many sessions match, at the end of the row of filters. */
export function SessionCount({ search: { order: _, ...search } }: { search: SessionSearch }) {
  const { data } = useApiQuery(['sessions', 'count', search], (client) => client.sessions.count(filtersOf(search)));
  return (
    <span className="session-count quiet small" aria-live="polite">
      {data && (data.isExact ? counted(data.count, 'session') : `${data.count.toLocaleString('en')}+ sessions`)}
    </span>
  );
}
