import type { Event, EventFilters } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { actionText } from '../../event-text.ts';
import { useOrganization } from '../../organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Loading } from '../../ui/list.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { Actor } from './actor.tsx';
import type { EventsSearch } from './search-params.ts';
import { type EventLog, useEventLog } from './use-event-log.ts';
import './events.css';

const ROW_PIXELS = 37;
// Loads the next page this many rows before the end.
const AHEAD_ROWS = 60;

/** The events, newest first; new ones appear at the top. Only visible rows are rendered. */
export function EventList({ filters, beginAnew }: { filters: EventFilters & EventsSearch; beginAnew: () => void }) {
  const log = useEventLog(filters, beginAnew);
  const { events, error, retry, waiting, showWaiting } = log;
  if (!events) return error ? <ErrorNotice error={error} retry={retry} /> : <Loading />;
  const show = () => {
    showWaiting();
    scrollTo({ top: 0 });
  };
  return (
    <section className="stack event-log" aria-label="Events">
      <div className="news" role="status">
        {waiting > 0 && (
          <Button look="primary" small onClick={show}>
            {waiting} new
          </Button>
        )}
      </div>
      {events.length === 0 ? (
        <div className="data-frame empty">
          <p>No matching events. Clear filters to see all. New events appear automatically.</p>
        </div>
      ) : (
        <Rows log={log} events={events} filters={filters} />
      )}
      {error !== null && <ErrorNotice error={error} retry={retry} />}
    </section>
  );
}

function Rows({ log, events, filters }: { log: EventLog; events: readonly Event[]; filters: EventsSearch }) {
  const { hasOlder, isLoadingOlder, loadOlder, error } = log;
  const list = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  // The content above the list opens and closes.
  useLayoutEffect(() => {
    const measure = () => list.current && setTop(list.current.getBoundingClientRect().top + scrollY);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const virtual = useWindowVirtualizer({
    count: events.length,
    estimateSize: () => ROW_PIXELS,
    overscan: 12,
    scrollMargin: top,
    getItemKey: (index) => events[index]!.sequence,
  });
  const rows = virtual.getVirtualItems();
  const last = rows.at(-1)?.index ?? 0;
  const wantsOlder = hasOlder && !isLoadingOlder && error === null && last >= events.length - AHEAD_ROWS;
  useEffect(() => {
    if (wantsOlder) loadOlder();
  }, [wantsOlder, loadOlder]);
  return (
    <>
      <ol ref={list} className="data-frame event-rows" style={{ height: virtual.getTotalSize() }}>
        {rows.map(({ index, key, start }) => (
          <li
            key={key}
            ref={virtual.measureElement}
            data-index={index}
            aria-setsize={hasOlder ? -1 : events.length}
            aria-posinset={index + 1}
            style={{ transform: `translateY(${start - top}px)` }}
          >
            <Row event={events[index]!} filters={filters} />
          </li>
        ))}
      </ol>
      {isLoadingOlder ? <Loading /> : !hasOlder && <p className="quiet small">No older events.</p>}
    </>
  );
}

const Row = memo(function Row({ event, filters }: { event: Event; filters: EventsSearch }) {
  const { organizationId } = useOrganization();
  const { eventId, type, outcome, environment, occurredAt } = event;
  return (
    <Link
      to="/$organizationId/events"
      params={{ organizationId }}
      search={{ ...filters, event: eventId }}
      resetScroll={false}
      preload={false}
    >
      <Actor actor={event.actor} />
      <span className="what">
        <PlainText text={actionText(event)} />
        {outcome !== 'success' && <Badge tone="bad">{outcome}</Badge>}
      </span>
      <code className="quiet type">{type}</code>
      <span className="quiet environment">{environment}</span>
      <span className="quiet time">
        <Time at={occurredAt} />
      </span>
    </Link>
  );
});
