import { Link } from '@tanstack/react-router';
import { useOrganization } from '../data/organization.tsx';

/** Leads to the events that say who changed this resource. */
export function ChangeHistory({ resourceId }: { resourceId: string }) {
  const { organizationId } = useOrganization();
  return (
    <Link className="small" to="/$organizationId/events" params={{ organizationId }} search={{ resourceId }}>
      Change history
    </Link>
  );
}
