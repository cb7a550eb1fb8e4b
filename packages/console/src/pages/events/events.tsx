import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useMemo, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { eventKinds } from '../../lib/event-text.ts';
import { Button } from '../../ui/button.tsx';
import { ExportMenu } from '../../ui/export-menu.tsx';
import { Page } from '../../ui/page.tsx';
import { SavedViews, type View } from '../../ui/saved-views.tsx';
import { EventDrawer } from './event-drawer.tsx';
import { groupTypes } from './event-groups.ts';
import { EventList } from './event-list.tsx';
import { Filters } from './filters.tsx';
import { type EventsSearch, eventsSearch, filtersOf } from './search-params.ts';
import { VerifyDialog } from './verify.tsx';

const views: readonly View<EventsSearch>[] = [
  { label: 'All', search: {} },
  { label: 'Failures', search: { group: 'failures' } },
  { label: 'Changes', search: { group: 'changes' } },
  { label: 'Access', search: { group: 'access' } },
  { label: 'Approvals', search: { group: 'approvals' } },
];

export function EventsPage() {
  const { client, organizationId } = useOrganization();
  const raw = useSearch({ from: '/$organizationId/events' });
  const { event, ...search } = useMemo(() => known(eventsSearch(raw as Record<string, unknown>)), [raw]);
  const navigate = useNavigate();
  const [verifying, setVerifying] = useState(false);
  const [round, setRound] = useState(0);
  const beginAnew = useCallback(() => setRound((before) => before + 1), []);
  const key = `${round} ${JSON.stringify(search)}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a range that ends now is fixed until the filters change
  const filters = useMemo(() => filtersOf(search, (group) => groupTypes[group]), [key]);
  const change = useChangeSearch<EventsSearch>();
  const closeDrawer = () => void navigate({ to: '.', search, replace: true, resetScroll: false });
  const { environment, ...others } = search;
  const inEnvironment = environment === undefined ? {} : { environment };
  const isFiltered = Object.keys(others).length > 0;
  return (
    <Page
      title="Event log"
      operation="listEvents"
      views={
        <SavedViews
          name={`events.${organizationId}`}
          views={views}
          search={search}
          onChoose={(next) => change(() => ({ ...next, ...inEnvironment }))}
        />
      }
      actions={
        <>
          <Button onClick={() => setVerifying(true)}>Verify event log</Button>
          <ExportMenu
            name="events"
            download={(format, signal) => client.events.download({ ...filters, format }, { signal })}
          />
        </>
      }
    >
      <Filters search={search} onChange={change} />
      <EventList
        key={key}
        {...{ search, filters, beginAnew }}
        onClear={isFiltered ? () => change(() => inEnvironment) : undefined}
      />
      {event && <EventDrawer eventId={event} search={search} onClose={closeDrawer} />}
      {verifying && <VerifyDialog onClose={() => setVerifying(false)} />}
    </Page>
  );
}

/** Without a type that this page does not know. */
function known({ type, ...others }: EventsSearch): EventsSearch {
  return type !== undefined && Object.hasOwn(eventKinds, type) ? { type, ...others } : others;
}
