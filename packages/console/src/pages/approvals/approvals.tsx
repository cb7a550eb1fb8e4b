// The inbox of all sessions: pending approvals, oldest first, and decided ones, newest first.
import type { Approval } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { X } from 'lucide-react';
import { useList, useOrganization } from '../../organization.tsx';
import { ShortcutsButton } from '../../shortcuts/open-sheet.tsx';
import { toolTitle } from '../../text-format.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName, SessionLink, shortId } from './approval-source.tsx';
import { Inbox } from './inbox.tsx';
import { NotifyButton } from './notify-button.tsx';
import { nameOf } from './resolution.tsx';
import type { ApprovalsSearch } from './search-params.ts';

// The event log reports changes (live.ts). Polling covers what it misses.
const AGAIN_MS = 60_000;

export function ApprovalsPage() {
  const { organizationId } = useParams({ from: '/$organizationId/approvals' });
  const search = useSearch({ from: '/$organizationId/approvals' });
  const navigate = useNavigate();
  const { status = 'pending', environment, sessionId } = search;
  const query = useList(
    ['approvals', status, environment, sessionId],
    (client, page) =>
      client.approvals.list({
        ...page,
        ...(status !== 'all' && { status }),
        ...(status !== 'pending' && { order: 'desc' as const }),
        environment,
        sessionId,
        ...(status === 'pending' && { include: 'context' as const }),
      }),
    { everyMs: AGAIN_MS },
  );
  const go = (change: ApprovalsSearch) =>
    void navigate({
      to: '/$organizationId/approvals',
      params: { organizationId },
      search: { ...search, ...change },
      replace: true,
    });
  return (
    <Page
      title="Approvals"
      operation="resolveApproval"
      about="Tool calls waiting for approval before they run."
      actions={
        <>
          <NotifyButton />
          <ShortcutsButton />
        </>
      }
    >
      <Filters search={search} onChange={go} />
      {status === 'pending' ? (
        <Inbox query={query} key={`${environment} ${sessionId}`} />
      ) : (
        <List
          caption="Approvals"
          query={query}
          columns={columns}
          rowKey={({ operationId }) => operationId}
          empty={<p>No matching approvals. Change the filters to see others.</p>}
        />
      )}
    </Page>
  );
}

const statuses = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'all'] as const;

function Filters({ search, onChange }: { search: ApprovalsSearch; onChange: (change: ApprovalsSearch) => void }) {
  const { organizationId } = useOrganization();
  const { status: current = 'pending' } = search;
  return (
    <div className="approval-filters">
      <nav className="tabs" aria-label="Status">
        {statuses.map((status) => (
          <Link
            key={status}
            to="/$organizationId/approvals"
            params={{ organizationId }}
            search={{ ...search, status: status === 'pending' ? undefined : status }}
            aria-current={status === current ? 'page' : undefined}
          >
            {status[0]!.toUpperCase() + status.slice(1)}
          </Link>
        ))}
      </nav>
      {search.sessionId !== undefined && (
        <Button small onClick={() => onChange({ sessionId: undefined })}>
          Session is {shortId(search.sessionId)} <X aria-hidden="true" />
        </Button>
      )}
    </div>
  );
}

const columns: Column<Approval>[] = [
  {
    label: 'Tool',
    cell: ({ operationId, name }) => <ApprovalLink operationId={operationId} name={name} />,
  },
  { label: 'Status', cell: ({ status }) => <Status value={status} /> },
  { label: 'Decided by', cell: (approval) => <Decider approval={approval} /> },
  { label: 'Decided', cell: ({ resolvedAt }) => <Time at={resolvedAt} absent="not yet" /> },
  { label: 'Agent', cell: ({ agentId }) => <AgentName agentId={agentId} /> },
  { label: 'Session', cell: ({ sessionId }) => <SessionLink sessionId={sessionId} /> },
  { label: 'Environment', cell: ({ environment }) => environment },
];

function Decider({ approval }: { approval: Approval }) {
  const { user } = useOrganization();
  if (!approval.resolvedBy) return <span className="quiet">–</span>;
  return <PlainText text={nameOf(approval, user.userId)} />;
}

export function ApprovalLink({ operationId, name }: Pick<Approval, 'operationId' | 'name'>) {
  const { organizationId } = useOrganization();
  return (
    <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
      <PlainText text={toolTitle(name)} />
    </Link>
  );
}
