import { Link } from '@tanstack/react-router';
import { useAgentNames } from '../../data/agent-names.ts';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { eventText } from '../../lib/event-text.ts';
import { Await } from '../../ui/page.tsx';
import { SkeletonRows } from '../../ui/skeleton.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { eventLink } from './event-link.ts';

const SHOWN = 8;

/** The latest events, in words. Each leads to what it is about. Nothing if they could not be read and `isFailureSaid`. */
export function LatestEvents({ isFailureSaid }: { isFailureSaid: boolean }) {
  const { organizationId } = useOrganization();
  const environment = useEnvironment();
  const names = useAgentNames();
  const query = useApiQuery(['events', 'latest', environment], async (client) => {
    const { data } = await client.events.list({ limit: SHOWN, ...(environment !== undefined && { environment }) });
    return data;
  });
  if (isFailureSaid && query.error && !query.data) return null;
  return (
    <section className="stack tight" aria-labelledby="latest">
      <div className="row apart">
        <h2 id="latest">Latest events</h2>
        <Link className="small" to="/$organizationId/events" params={{ organizationId }}>
          Event log
        </Link>
      </div>
      <Await query={query} skeleton={<SkeletonRows rows={SHOWN} />}>
        {(events) =>
          events.length === 0 ? (
            <p className="quiet">No events yet.</p>
          ) : (
            <ul className="events data-frame">
              {events.map((event) => (
                <li key={event.eventId}>
                  <Link {...eventLink(organizationId, event)}>
                    <span className="what">
                      <PlainText text={eventText(event, names)} />
                    </span>
                    <span className="quiet small">
                      <Time at={event.occurredAt} />
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Await>
    </section>
  );
}
