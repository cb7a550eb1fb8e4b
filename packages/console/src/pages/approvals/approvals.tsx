// The inbox of all sessions: pending approvals, oldest first, and decided ones, newest first.
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { CircleCheckBig } from 'lucide-react';
import { useMemo } from 'react';
import { type ListQuery, useList, useOrganization } from '../../data/organization.tsx';
import { ShortcutsButton } from '../../shortcuts/open-sheet.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { FilterBar } from '../../ui/filter-bar.tsx';
import { Page } from '../../ui/page.tsx';
import { Table } from '../../ui/table.tsx';
import { approvalColumns } from './approval-columns.tsx';
import { Inbox } from './inbox.tsx';
import { NotifyButton } from './notify-button.tsx';
import type { ApprovalsSearch } from './search-params.ts';
import './inbox.css';

// The event log reports changes (frame/live.ts). Polling covers what it misses.
const AGAIN_MS = 60_000;

export function ApprovalsPage() {
  const { organizationId } = useParams({ from: '/$organizationId/approvals' });
  const { user } = useOrganization();
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
  const columns = useMemo(() => approvalColumns(user.userId), [user.userId]);
  const isFiltered = environment !== undefined || sessionId !== undefined;
  const go = (change: ApprovalsSearch) =>
    void navigate({
      to: '/$organizationId/approvals',
      params: { organizationId },
      search: { ...search, ...change },
    });
  const clear = () => go({ sessionId: undefined });
  return (
    <Page
      title="Approvals"
      operation="resolveApproval"
      views={<StatusViews search={search} pending={status === 'pending' ? countText(query) : undefined} />}
      actions={
        <>
          <NotifyButton />
          <ShortcutsButton />
        </>
      }
    >
      {sessionId !== undefined && (
        <FilterBar filters={[{ label: 'Session', value: sessionId, onChange: (value) => go({ sessionId: value }) }]} />
      )}
      {status === 'pending' ? (
        <Inbox
          query={query}
          isFiltered={isFiltered}
          onClear={sessionId === undefined ? undefined : clear}
          key={`${environment} ${sessionId}`}
        />
      ) : (
        <Table
          name="approvals"
          caption="Approvals, newest first"
          query={query}
          columns={columns}
          rowKey={({ operationId }) => operationId}
          rowLink={({ operationId }) => ({
            to: '/$organizationId/approvals/$operationId',
            params: { organizationId, operationId },
          })}
          empty={
            <EmptyState
              icon={CircleCheckBig}
              title={`No ${status === 'all' ? '' : `${status} `}approvals`}
              action={sessionId !== undefined && <Button onClick={clear}>Clear filters</Button>}
            >
              {isFiltered ? 'Choose all environments, or another status.' : nothingOf[status]}
            </EmptyState>
          }
        />
      )}
    </Page>
  );
}

const statuses = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'all'] as const;

const nothingOf = {
  approved: 'Calls that were approved are listed here, with who approved them.',
  denied: 'Calls that were denied are listed here, with who denied them and why.',
  expired: 'Calls without a decision within the time limit of their agent are listed here.',
  cancelled: 'Calls whose session ended or moved on before a decision are listed here.',
  all: 'Calls that need approval are listed here, and stay after the decision.',
} as const;

function countText({ data, hasNextPage }: ListQuery<unknown>): string | undefined {
  return data && data.length > 0 ? `${data.length}${hasNextPage ? '+' : ''}` : undefined;
}

function StatusViews({
  search,
  pending,
}: {
  search: ApprovalsSearch;
  /** How many there are, if they are listed. */
  pending: string | undefined;
}) {
  const { organizationId } = useOrganization();
  const { status: current = 'pending' } = search;
  return (
    <nav className="views" aria-label="Status">
      {statuses.map((status) => (
        <Link
          key={status}
          to="/$organizationId/approvals"
          params={{ organizationId }}
          search={{ ...search, status: status === 'pending' ? undefined : status }}
          activeOptions={{ exact: true, includeSearch: true, explicitUndefined: true }}
          aria-current={status === current ? 'page' : undefined}
        >
          {status[0]!.toUpperCase() + status.slice(1)}
          {status === 'pending' && pending !== undefined && (
            <>
              {' '}
              <span className="count">{pending}</span>
            </>
          )}
        </Link>
      ))}
    </nav>
  );
}
