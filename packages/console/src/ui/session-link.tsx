import { Link } from '@tanstack/react-router';
import { useOrganization } from '../organization.tsx';

/** To a Session, by the end of its id, which tells it from others. */
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
