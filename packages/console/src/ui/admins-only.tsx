import type { ReactNode } from 'react';
import { useOrganization } from '../data/organization.tsx';
import { Notice } from './notice.tsx';
import { Page } from './page.tsx';

/** A page for admins and owners. Others see who can help them. */
export function AdminsOnly({
  title,
  action,
  children,
}: {
  title: string;
  /** Completes “Only admins can …”. */
  action: string;
  children: ReactNode;
}) {
  const { may } = useOrganization();
  if (may('admin')) return children;
  return (
    <Page title={title}>
      <Notice title={`Only admins can ${action}.`}>
        <p>Ask an admin or owner of the organization for help, or for the admin role.</p>
      </Notice>
    </Page>
  );
}
