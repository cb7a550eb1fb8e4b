import type { EventFilters } from '@signalbox/client';
import { ScrollText } from 'lucide-react';
import { useMemo } from 'react';
import { useAgentNames } from '../../data/agent-names.ts';
import { useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { NoMatches } from '../../ui/empty-state.tsx';
import { Table } from '../../ui/table.tsx';
import { eventColumns } from './columns.tsx';
import type { EventsSearch } from './search-params.ts';
import { useEventLog } from './use-event-log.ts';
import './events.css';

/** The events, newest first; new ones appear at the top. */
export function EventList({
  search,
  filters,
  beginAnew,
  onClear,
}: {
  search: EventsSearch;
  filters: EventFilters;
  beginAnew: () => void;
  /** Undefined without filters. */
  onClear: (() => void) | undefined;
}) {
  const { organizationId } = useOrganization();
  const names = useAgentNames();
  const columns = useMemo(() => eventColumns(names), [names]);
  const { events, error, retry, waiting, showWaiting, hasOlder, isLoadingOlder, loadOlder } = useEventLog(
    filters,
    beginAnew,
  );
  const show = () => {
    showWaiting();
    scrollTo({ top: 0 });
  };
  return (
    <section className="event-log" aria-label="Events">
      <div className="news" role="status">
        {waiting > 0 && (
          <Button look="primary" small onClick={show}>
            {waiting} new
          </Button>
        )}
      </div>
      <Table
        name="events"
        caption="Events, newest first"
        query={{
          data: events,
          error,
          refetch: retry,
          hasNextPage: hasOlder,
          isFetchingNextPage: isLoadingOlder,
          fetchNextPage: loadOlder,
        }}
        columns={columns}
        rowKey={({ eventId }) => eventId}
        rowLink={({ eventId }) => ({
          to: '/$organizationId/events',
          params: { organizationId },
          search: { ...search, event: eventId },
          resetScroll: false,
          preload: false,
        })}
        empty={
          <NoMatches icon={ScrollText} what="events" onClear={onClear}>
            Change or clear the filters. New events appear automatically.
          </NoMatches>
        }
      />
    </section>
  );
}
