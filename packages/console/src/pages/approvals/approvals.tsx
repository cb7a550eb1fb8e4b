// The inbox of all sessions: pending approvals, oldest first, and decided ones, newest first.
import type { Approval } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { EnvironmentFilter } from '../../filters.tsx';
import { useList, useOrganization } from '../../organization.tsx';
import { sessionIdPattern } from '../../search-params.ts';
import { counted, toolTitle } from '../../text-format.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Select } from '../../ui/field.tsx';
import { FilterField } from '../../ui/filter.tsx';
import { type Column, List, Loading } from '../../ui/list.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName, SessionLink } from './approval-source.tsx';
import { InboxItem } from './inbox-item.tsx';
import { KeysHelp } from './keys-help.tsx';
import { nameOf } from './resolution.tsx';
import type { ApprovalsSearch } from './search-params.ts';
import { useShortcuts } from './shortcuts.ts';

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
    <Page title="Approvals" operation="resolveApproval" about="Tool calls waiting for your approval before they run.">
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

const statuses = [
  { value: 'pending', label: 'Pending' },
  { value: 'approved', label: 'Approved' },
  { value: 'denied', label: 'Denied' },
  { value: 'expired', label: 'Expired' },
  { value: 'cancelled', label: 'Cancelled' },
  { value: 'all', label: 'All, newest first' },
];

function Filters({ search, onChange }: { search: ApprovalsSearch; onChange: (change: ApprovalsSearch) => void }) {
  return (
    <div className="filters">
      <Select
        label="Status"
        value={search.status ?? 'pending'}
        options={statuses}
        onChange={(event) =>
          onChange({
            status:
              event.currentTarget.value === 'pending'
                ? undefined
                : (event.currentTarget.value as ApprovalsSearch['status']),
          })
        }
      />
      <EnvironmentFilter
        value={search.environment}
        onChange={(environment) => onChange({ environment: environment || undefined })}
      />
      <FilterField
        label="Session"
        placeholder="ses_…"
        pattern={sessionIdPattern}
        refusal="Enter a session ID: ses_ and 26 characters."
        value={search.sessionId ?? ''}
        onChange={(sessionId) => onChange({ sessionId: sessionId || undefined })}
      />
    </div>
  );
}

function Inbox({ query }: { query: ReturnType<typeof useList<Approval>> }) {
  const { may } = useOrganization();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const list = useRef<HTMLDivElement>(null);
  const shortcuts = useShortcuts(list);
  // An approval that was shown keeps its place, so that nothing moves while the user clicks or taps.
  const [seen, setSeen] = useState<ReadonlyMap<string, Approval>>(new Map());
  const now = new Map(data?.map((one) => [one.operationId, one]));
  if (data?.some((one) => seen.get(one.operationId) !== one)) setSeen(new Map([...seen, ...now]));
  if (!data) return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <Loading />;
  // Ids sort by time.
  const shown = [...seen.values()].sort((one, other) => (one.operationId < other.operationId ? -1 : 1));
  const decided = shown.filter(({ operationId }) => !now.has(operationId)).length;
  return (
    <div className="stack">
      <div className="row apart">
        <p role="status">
          {data.length === 0
            ? 'No pending approvals.'
            : `${data.length}${hasNextPage ? '+' : ''} pending, oldest first.`}
        </p>
        {decided > 0 && (
          <Button small onClick={() => setSeen(now)}>
            Hide {counted(decided, 'decided approval')}
          </Button>
        )}
      </div>
      {error && <ErrorNotice error={error} retry={() => void refetch()} />}
      {may('write') && <KeysHelp {...shortcuts} />}
      <div className="stack" ref={list}>
        {shown.map((approval) => (
          <InboxItem key={approval.operationId} approval={approval} isPending={now.has(approval.operationId)} />
        ))}
      </div>
      {hasNextPage && (
        <div className="row">
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        </div>
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
