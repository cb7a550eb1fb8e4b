import { Link } from '@tanstack/react-router';
import { CircleCheckBig, House, Menu, MessagesSquare } from 'lucide-react';
import { useOrganization } from '../data/organization.tsx';
import { PendingCount } from './navigation.tsx';

/** On a phone, the pages that people open most, within reach of a thumb. */
export function BottomBar({ isOpen, onMore }: { isOpen: boolean; onMore: () => void }) {
  const { organizationId } = useOrganization();
  const params = { organizationId };
  return (
    <nav className="bottom-bar" aria-label="Most used pages">
      <Link to="/$organizationId" params={params} activeOptions={{ exact: true }}>
        <House aria-hidden="true" /> Overview
      </Link>
      <Link to="/$organizationId/approvals" params={params}>
        <CircleCheckBig aria-hidden="true" /> Approvals
        <PendingCount />
      </Link>
      <Link to="/$organizationId/sessions" params={params}>
        <MessagesSquare aria-hidden="true" /> Sessions
      </Link>
      <button type="button" aria-expanded={isOpen} onClick={onMore}>
        <Menu aria-hidden="true" /> More
      </button>
    </nav>
  );
}
