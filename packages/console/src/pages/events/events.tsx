import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useState } from 'react';
import { eventKinds } from '../../event-text.ts';
import { useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Page } from '../../ui/page.tsx';
import { EventDialog } from './event-dialog.tsx';
import { EventList } from './event-list.tsx';
import { ExportEvents } from './export.tsx';
import { Filters } from './filters.tsx';
import type { EventsSearch } from './search-params.ts';
import { VerifyDialog } from './verify.tsx';

export function EventsPage() {
  const { organizationId } = useOrganization();
  const { event, type, ...rest } = useSearch({ from: '/$organizationId/events' });
  const navigate = useNavigate();
  const [verifying, setVerifying] = useState(false);
  const [round, setRound] = useState(0);
  const filters = { ...(type !== undefined && Object.hasOwn(eventKinds, type) && { type }), ...rest };
  const show = (search: EventsSearch, replace = false) =>
    void navigate({ to: '/$organizationId/events', params: { organizationId }, search, replace, resetScroll: false });
  const beginAnew = useCallback(() => setRound((before) => before + 1), []);
  return (
    <Page
      title="Event log"
      operation="listEvents"
      about="Who changed what in this organization. Each event contains the hash of the previous one, so tampering can be detected."
      actions={<Button onClick={() => setVerifying(true)}>Verify event log</Button>}
    >
      <div className="row apart event-head">
        <Filters filters={filters} onChange={(next) => show(next)} />
        <ExportEvents filters={filters} />
      </div>
      <EventList key={`${round} ${JSON.stringify(filters)}`} filters={filters} beginAnew={beginAnew} />
      {event && <EventDialog eventId={event} filters={filters} onClose={() => show(filters, true)} />}
      {verifying && <VerifyDialog onClose={() => setVerifying(false)} />}
    </Page>
  );
}
