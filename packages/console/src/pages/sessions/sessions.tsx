import type { Session } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useAgentNames } from '../../agent-names.ts';
import { useList, useOrganization } from '../../organization.tsx';
import { useOpenNew } from '../../palette/open-new.ts';
import { counted } from '../../text-format.ts';
import { Button } from '../../ui/button.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { Filters } from './filters.tsx';
import { NewSession } from './new-session.tsx';
import { sessionsSearch } from './search-params.ts';
import { SessionStatus } from './session-status.tsx';
import { costText } from './session-text.ts';
import './sessions.css';

export function SessionsPage() {
  const { may, organizationId } = useOrganization();
  // Ignores the other search parameters, which the router passes on.
  const search = sessionsSearch(useSearch({ from: '/$organizationId/sessions' }));
  const navigate = useNavigate();
  const names = useAgentNames();
  const [isOpening, setOpening] = useState(false);
  useOpenNew(() => setOpening(true), may('write'));
  const sessions = useList(['sessions', search], (client, page) => client.sessions.list({ ...search, ...page }));
  const isFiltered = Object.keys(search).length > 0;
  const columns: Column<Session>[] = [
    {
      label: 'Session',
      cell: ({ sessionId, agentId, metadata }) => (
        <>
          <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }}>
            <PlainText text={names.get(agentId) ?? agentId} />{' '}
            <span className="mono small">…{sessionId.slice(-6)}</span>
          </Link>
          <Metadata metadata={metadata} />
        </>
      ),
    },
    {
      label: 'Status',
      cell: (session) => <SessionStatus session={session} />,
    },
    { label: 'Environment', cell: ({ environment }) => environment },
    ...(sessions.data?.some(({ endUser }) => endUser) ? [endUserColumn] : []),
    {
      label: 'Usage',
      cell: ({ turn, usage: { inputTokens, outputTokens, costUsd } }) => (
        <span className="number small">
          {counted(turn, 'turn')}, {counted(inputTokens + outputTokens, 'token')}
          {costUsd !== null && `, ${costText(costUsd)}`}
        </span>
      ),
    },
    { label: 'Opened', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <Page
      title="Sessions"
      operation="openSession"
      about="Every run of an agent: a task or a conversation."
      actions={
        may('write') && (
          <Button look="primary" onClick={() => setOpening(true)}>
            New session
          </Button>
        )
      }
    >
      <Filters
        search={search}
        onSearch={(next) => void navigate({ to: '.', search: next, replace: true, resetScroll: false })}
      />
      <List
        caption="Sessions, newest first"
        query={sessions}
        columns={columns}
        rowKey={({ sessionId }) => sessionId}
        empty={
          isFiltered ? (
            <p>No matching sessions. Change or clear the filters.</p>
          ) : (
            <>
              <h2>No sessions yet</h2>
              <p>
                Start one here, with a schedule, or from your program with <code>POST /api/v1/sessions</code>.
              </p>
            </>
          )
        }
      />
      {isOpening && <NewSession onClose={() => setOpening(false)} />}
    </Page>
  );
}

const endUserColumn: Column<Session> = {
  label: 'End user',
  cell: ({ endUser }) => endUser && <PlainText text={endUser.name ?? endUser.id} />,
};

// The session's page shows all of it.
const SHOWN_METADATA = 3;

function Metadata({ metadata }: Pick<Session, 'metadata'>) {
  const entries = Object.entries(metadata);
  if (entries.length === 0) return null;
  return (
    <div className="metadata small quiet">
      {entries.slice(0, SHOWN_METADATA).map(([key, value]) => (
        <span key={key}>
          <PlainText text={`${key}=${String(value)}`} />
        </span>
      ))}
      {entries.length > SHOWN_METADATA && <span>and {entries.length - SHOWN_METADATA} more</span>}
    </div>
  );
}
