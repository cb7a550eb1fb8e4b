import type { Event } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { eventText } from '../../event-text.ts';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { Await } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';

/** The latest events, in words. */
export function LatestEvents() {
  const { organizationId } = useOrganization();
  const query = useApiQuery(['events', 'latest'], async (client) => (await client.events.list({ limit: 10 })).data);
  return (
    <section className="stack tight" aria-labelledby="latest">
      <div className="row apart">
        <h2 id="latest">Latest events</h2>
        <Link to="/$organizationId/events" params={{ organizationId }}>
          Event log
        </Link>
      </div>
      <Await query={query}>
        {(events) => (
          <ul className="events data-frame">
            {events.map((event) => (
              <li key={event.eventId}>
                <span>
                  <PlainText text={eventText(event)} /> <About event={event} />
                </span>
                <span className="quiet small">
                  <Time at={event.occurredAt} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Await>
    </section>
  );
}

/** A link to the event's resource. */
function About({ event: { type, resource, sessionId } }: { event: Event }) {
  const { organizationId } = useOrganization();
  if (resource.type === 'approval') {
    return (
      <Link
        className="small"
        to="/$organizationId/approvals/$operationId"
        params={{ organizationId, operationId: resource.id }}
      >
        Approval
      </Link>
    );
  }
  if (resource.type === 'schedule' && sessionId === null && type !== 'schedule.deleted') {
    return (
      <Link
        className="small"
        to="/$organizationId/schedules/$scheduleId"
        params={{ organizationId, scheduleId: resource.id }}
      >
        Schedule
      </Link>
    );
  }
  if (sessionId === null || type === 'session.deleted') return null;
  return (
    <Link className="small" to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }}>
      Session
    </Link>
  );
}
