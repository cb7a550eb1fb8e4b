import type { ListedSession } from '@signalbox/client';
import { useSearch } from '@tanstack/react-router';
import { MessagesSquare } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { useSessionName } from '../../data/agent-names.ts';
import { useOpenNew } from '../../data/open-new.ts';
import { useList, useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { Button } from '../../ui/button.tsx';
import { writeClipboard } from '../../ui/clipboard.ts';
import { EmptyState, NoMatches } from '../../ui/empty-state.tsx';
import { ExportMenu } from '../../ui/export-menu.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Page } from '../../ui/page.tsx';
import { SavedViews, type View } from '../../ui/saved-views.tsx';
import { Table } from '../../ui/table.tsx';
import { useToast } from '../../ui/toast.tsx';
import { type EndAction, EndButtons, EndDialog } from './end-many.tsx';
import { Filters } from './filters.tsx';
import { useLateTimes } from './late-times.ts';
import { NewSession } from './new-session.tsx';
import { filtersOf, type SessionSearch, sessionsSearch } from './search-params.ts';
import { sessionColumns } from './session-columns.tsx';
import { isEnded } from './use-session.ts';
import './sessions.css';

const views: readonly View<SessionSearch>[] = [
  { label: 'All', search: {} },
  { label: 'Running', search: { status: 'running' } },
  { label: 'Waiting', search: { status: 'waiting' } },
  { label: 'Failed', search: { hasError: true } },
];

export function SessionsPage() {
  const { client, may, organizationId } = useOrganization();
  const raw = useSearch({ from: '/$organizationId/sessions' });
  // Ignores the other search parameters, which the router passes on.
  const search = useMemo(() => sessionsSearch(raw), [raw]);
  const change = useChangeSearch<SessionSearch>();
  const [isOpening, setOpening] = useState(false);
  useOpenNew(() => setOpening(true), may('write'));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  // biome-ignore lint/correctness/useExhaustiveDependencies: other filters list other rows
  useEffect(() => setSelected(new Set()), [search]);
  const nameOf = useSessionName();
  const columns = useMemo(() => sessionColumns(nameOf), [nameOf]);
  const sessions = useList(['sessions', search], (client, page) =>
    client.sessions.list({ ...filtersOf(search), ...(search.order && { order: search.order }), ...page }),
  );
  useLateTimes(sessions.data);
  const { environment, order, ...filters } = search;
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <Page
      title="Sessions"
      operation="listSessions"
      views={
        <SavedViews
          name={`sessions.${organizationId}`}
          views={views}
          search={search}
          onChoose={(next) => change((before) => ({ ...next, environment: before.environment }) as SessionSearch)}
        />
      }
      actions={
        <>
          <ExportMenu
            name="sessions"
            download={(format, signal) =>
              client.sessions.download(
                { ...filtersOf(search), ...(search.order && { order: search.order }), format },
                { signal },
              )
            }
          />
          {may('write') && (
            <Button look="primary" onClick={() => setOpening(true)}>
              New session
            </Button>
          )}
        </>
      }
    >
      <Filters search={search} onChange={change} />
      <Table
        name="sessions"
        caption={order === 'asc' ? 'Sessions, oldest first' : 'Sessions, newest first'}
        query={sessions}
        columns={columns}
        rowKey={({ sessionId }) => sessionId}
        rowLink={({ sessionId }) => ({
          to: '/$organizationId/sessions/$sessionId',
          params: { organizationId, sessionId },
        })}
        actions={(session) => <RowMenu name={nameOf(session)} session={session} />}
        {...(may('write') && {
          selection: {
            selected,
            onChange: setSelected,
            actions: (items: readonly ListedSession[]) => (
              <EndButtons sessions={items} onDone={() => setSelected(new Set())} />
            ),
          },
        })}
        sort={{
          by: 'opened',
          isDescending: order !== 'asc',
          onChange: (_, isDescending) =>
            change((before) => ({ ...before, order: isDescending ? undefined : 'asc' }) as SessionSearch),
        }}
        empty={
          isFiltered || environment !== undefined ? (
            <NoMatches
              icon={MessagesSquare}
              what="sessions"
              onClear={
                isFiltered
                  ? () => change(({ environment, order }) => ({ environment, order }) as SessionSearch)
                  : undefined
              }
            >
              Change or clear the filters. The words of a message are found a few seconds after it was written.
            </NoMatches>
          ) : (
            <EmptyState
              icon={MessagesSquare}
              title="No sessions yet"
              docs={{ label: 'How to open a session', href: '/docs#openSession' }}
              action={
                may('write') && (
                  <Button look="primary" onClick={() => setOpening(true)}>
                    New session
                  </Button>
                )
              }
            >
              Start one here, with a schedule, or from your program.
            </EmptyState>
          )
        }
      />
      {isOpening && <NewSession onClose={() => setOpening(false)} />}
    </Page>
  );
}

function RowMenu({ name, session }: { name: string; session: ListedSession }) {
  const { may } = useOrganization();
  const toast = useToast();
  const [asked, setAsked] = useState<EndAction>();
  const copy = async () => {
    const isCopied = await writeClipboard(session.sessionId);
    toast(isCopied ? 'Copied' : 'Your browser blocked copying.');
  };
  const ends = may('write') && !isEnded(session);
  return (
    <>
      <Menu
        label={`Actions for ${name} ${session.preview ?? ''}`.trim()}
        items={[
          { label: 'Copy ID', onSelect: () => void copy() },
          ...(ends ? [{ label: 'Close session', group: 'end', onSelect: () => setAsked('close') }] : []),
          ...(ends
            ? [{ label: 'Cancel session', group: 'end', danger: true, onSelect: () => setAsked('cancel') }]
            : []),
        ]}
      />
      {asked && <EndDialog action={asked} sessions={[session]} onClose={() => setAsked(undefined)} />}
    </>
  );
}
