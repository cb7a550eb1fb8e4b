import type { Event } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useAgentNames } from '../../data/agent-names.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { actionText } from '../../lib/event-text.ts';
import { Status } from '../../ui/badge.tsx';
import { Json } from '../../ui/copy.tsx';
import { Drawer } from '../../ui/drawer.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Await } from '../../ui/page.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { Actor } from './actor.tsx';
import type { EventsSearch } from './search-params.ts';

/** One event in full. `search` is that of the list. */
export function EventDrawer({
  eventId,
  search,
  onClose,
}: {
  eventId: string;
  search: EventsSearch;
  onClose: () => void;
}) {
  const query = useApiQuery(['event-log', 'one', eventId], (client) => client.events.get(eventId));
  return (
    <Drawer title={query.data ? `Event ${query.data.sequence}` : 'Event'} onClose={onClose}>
      <Await query={query}>{(event) => <Details event={event} search={search} />}</Await>
    </Drawer>
  );
}

function Details({ event, search }: { event: Event; search: EventsSearch }) {
  const { type, occurredAt, outcome, actor, resource, environment, sessionId, agentId, changes, context } = event;
  const names = useAgentNames();
  return (
    <>
      <p>
        <strong>
          <PlainText text={actionText(event, names)} />
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
          <span className="row">
            <Actor actor={actor} />
            {actor.id && (
              <>
                <IdChip value={actor.id} />
                <Only search={search} by={{ actorId: actor.id }} of="all events by this actor" />
              </>
            )}
          </span>
        </Fact>
        <Fact name="Resource">
          <span className="row">
            <span className="quiet small">{resource.type}</span>
            {/_/.test(resource.id) ? <IdChip value={resource.id} /> : resource.id}
            <Only search={search} by={{ resourceId: resource.id }} of="all events of this resource" />
          </span>
        </Fact>
        {environment && <Fact name="Environment">{environment}</Fact>}
        {sessionId && (
          <Fact name="Session">
            <span className="row">
              <SessionLink sessionId={sessionId} />
              <Only search={search} by={{ sessionId }} of="all events of this session" />
            </span>
          </Fact>
        )}
        {agentId && (
          <Fact name="Agent">
            <span className="row">
              {names.get(agentId) ?? <IdChip value={agentId} />}
              <Only search={search} by={{ agentId }} of="all events about this agent" />
            </span>
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
function Only({ search, by, of }: { search: EventsSearch; by: EventsSearch; of: string }) {
  const { organizationId } = useOrganization();
  return (
    <Link className="small" to="/$organizationId/events" params={{ organizationId }} search={{ ...search, ...by }}>
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
