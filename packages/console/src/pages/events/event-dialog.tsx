import type { Event } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { actionText } from '../../event-text.ts';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Await } from '../../ui/page.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { Actor } from './actor.tsx';
import type { EventsSearch } from './search-params.ts';

/** One event in full. */
export function EventDialog({
  eventId,
  filters,
  onClose,
}: {
  eventId: string;
  filters: EventsSearch;
  onClose: () => void;
}) {
  const query = useApiQuery(['event-log', 'one', eventId], (client) => client.events.get(eventId));
  return (
    <Dialog title={query.data ? `Event ${query.data.sequence}` : 'Event'} onClose={onClose} wide>
      <Await query={query}>{(event) => <Details event={event} filters={filters} />}</Await>
      <div className="foot">
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      </div>
    </Dialog>
  );
}

function Details({ event, filters }: { event: Event; filters: EventsSearch }) {
  const { type, occurredAt, outcome, actor, resource, environment, sessionId, changes, context } = event;
  return (
    <>
      <p>
        <strong>
          <PlainText text={actionText(event)} />
        </strong>
      </p>
      <dl className="facts">
        <Fact name="When">
          <ExactTime at={occurredAt} />
        </Fact>
        <Fact name="Type">
          <code>{type}</code>
        </Fact>
        <Fact name="Outcome">
          <Status value={outcome} />
        </Fact>
        <Fact name="Actor">
          <Actor actor={actor} />{' '}
          {actor.id && (
            <>
              <IdChip value={actor.id} />{' '}
              <Only filters={filters} by={{ actorId: actor.id }} of="all events by this actor" />
            </>
          )}
        </Fact>
        <Fact name="Resource">
          <span className="quiet small">{resource.type}</span>{' '}
          {/_/.test(resource.id) ? <IdChip value={resource.id} /> : resource.id}{' '}
          <Only filters={filters} by={{ resourceId: resource.id }} of="all events of this resource" />
        </Fact>
        {environment && <Fact name="Environment">{environment}</Fact>}
        {sessionId && (
          <Fact name="Session">
            <SessionLink sessionId={sessionId} />{' '}
            <Only filters={filters} by={{ sessionId }} of="all events of this session" />
          </Fact>
        )}
      </dl>
      {changes && <Changes changes={changes} />}
      <h3>Request</h3>
      <dl className="facts">
        <Fact name="Request ID">{context.requestId ? <code>{context.requestId}</code> : 'none (by the service)'}</Fact>
        <Fact name="IP address">{context.ipAddress ?? '–'}</Fact>
        <Fact name="User agent">{context.userAgent ?? '–'}</Fact>
      </dl>
      <details>
        <summary>Hash and raw event</summary>
        <div className="stack">
          <dl className="facts">
            <Fact name="Hash">
              <code>{event.hash}</code>
            </Fact>
            <Fact name="Previous hash">
              <code>{event.previousHash}</code>
            </Fact>
          </dl>
          <Json value={event} />
        </div>
      </details>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** A link to the events that share a field with this one. */
function Only({ filters, by, of }: { filters: EventsSearch; by: EventsSearch; of: string }) {
  const { organizationId } = useOrganization();
  return (
    <Link className="small" to="/$organizationId/events" params={{ organizationId }} search={{ ...filters, ...by }}>
      {of}
    </Link>
  );
}

function Changes({ changes }: { changes: NonNullable<Event['changes']> }) {
  return (
    <>
      <h3>Changes</h3>
      <table className="changes">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(changes).map(([field, [before, after]]) => (
            <tr key={field}>
              <td>{field}</td>
              <td>
                <Value of={before} />
              </td>
              <td>
                <Value of={after} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Value({ of }: { of: unknown }) {
  if (of === null || of === undefined) return <span className="quiet">–</span>;
  return (
    <div>
      <PlainText text={typeof of === 'string' ? of : JSON.stringify(of, null, 2)} />
    </div>
  );
}
