import type { Overview } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useOrganization } from '../../organization.tsx';
import { capped } from '../../text-format.ts';
import { Status } from '../../ui/badge.tsx';

const now = ['running', 'waiting', 'idle'] as const;
const ended = ['completed', 'failed', 'cancelled'] as const;

/** Sessions by status: open now, and ended within a day. */
export function SessionCounts({ sessions }: { sessions: Overview['sessions'] }) {
  return (
    <section className="stack tight" aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <div className="tiles">
        <Tiles label="Open now" statuses={now} sessions={sessions} />
        <Tiles label="Ended in the last 24 hours" statuses={ended} sessions={sessions} />
      </div>
    </section>
  );
}

function Tiles({
  label,
  statuses,
  sessions,
}: {
  label: string;
  statuses: readonly (keyof Overview['sessions'])[];
  sessions: Overview['sessions'];
}) {
  const { organizationId } = useOrganization();
  return (
    <div className="card">
      <h3 className="quiet small">{label}</h3>
      <ul>
        {statuses.map((status) => (
          <li key={status}>
            <Link to="/$organizationId/sessions" params={{ organizationId }} search={{ status }}>
              <span className="figure number">{capped(sessions[status])}</span> <Status value={status} />
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
}
