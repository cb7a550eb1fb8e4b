import { Link } from '@tanstack/react-router';
import { useOrganization } from '../data/organization.tsx';

/** A link to a session, shown as the end of its id. */
export function SessionLink({ sessionId }: { sessionId: string }) {
  const { organizationId } = useOrganization();
  return (
    <Link
      className="mono nowrap"
      to="/$organizationId/sessions/$sessionId"
      params={{ organizationId, sessionId }}
      title={sessionId}
    >
      ses_…{sessionId.slice(-6)}
    </Link>
  );
}
