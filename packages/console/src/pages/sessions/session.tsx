import type { Session } from '@signalbox/client';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { PanelRight, Share2 } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { useIsPhone } from '../../lib/width.ts';
import { Button } from '../../ui/button.tsx';
import { Missing } from '../../ui/empty-state.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Bone, SkeletonRows } from '../../ui/skeleton.tsx';
import { SplitPanes } from '../../ui/split-panes.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { SessionMenu } from './actions.tsx';
import { sessionSearch } from './search-params.ts';
import { DecideLink, FactsLine, useTitle } from './session-header.tsx';
import { SessionStatus } from './session-status.tsx';
import { LiveConversation, useTurns } from './session-view.tsx';
import { useUnsentStore } from './unsent-message.ts';
import { useAgent, useFollowing, useSession } from './use-session.ts';
import './session.css';

// Loaded on demand with the virtual list, which only these views need.
const SessionTrace = lazy(async () => ({ default: (await import('./trace/session-trace.tsx')).SessionTrace }));
const Chunks = lazy(async () => ({ default: (await import('./chunks.tsx')).Chunks }));
const SessionFiles = lazy(async () => ({ default: (await import('./session-files.tsx')).SessionFiles }));
const SessionDetails = lazy(async () => ({ default: (await import('./details.tsx')).SessionDetails }));
const SessionDeliveries = lazy(async () => ({
  default: (await import('./session-deliveries.tsx')).SessionDeliveries,
}));

const ShareDialog = lazy(async () => ({ default: (await import('./share-dialog.tsx')).ShareDialog }));

export function SessionPage() {
  const { organizationId, sessionId } = useParams({ from: '/$organizationId/sessions/$sessionId' });
  const query = useSession(sessionId);
  if (query.data) return <Shown session={query.data} key={sessionId} />;
  return (
    <Page title="Session" about={query.error ? undefined : <Bone />}>
      <Await
        query={query}
        skeleton={<SkeletonRows />}
        missing={<Missing what="session" to="/$organizationId/sessions" params={{ organizationId }} />}
      >
        {() => null}
      </Await>
    </Page>
  );
}

function Shown({ session }: { session: Session }) {
  const { organizationId, may } = useOrganization();
  const { sessionId } = session;
  const search = sessionSearch(useSearch({ from: '/$organizationId/sessions/$sessionId' }));
  const { tab = 'conversation', turn } = search;
  const navigate = useNavigate();
  const followed = useFollowing(session);
  const timeline = useTurns(sessionId);
  const agent = useAgent(session.agentId).data;
  const title = useTitle(session);
  const unsent = useUnsentStore(sessionId);
  const [isSharing, setSharing] = useState(false);
  const isPhone = useIsPhone();
  const [hasTrace, setTrace] = useState(() => localStorage.getItem(TRACE) !== 'off');
  const show = (next: typeof tab) =>
    navigate({
      to: '.',
      search: (before) => ({ ...before, tab: next === 'conversation' ? undefined : next }),
      resetScroll: false,
    });
  const toggleTrace = () => {
    localStorage.setItem(TRACE, hasTrace ? 'off' : 'on');
    setTrace(!hasTrace);
  };
  const trace = (
    <Suspense fallback={<SkeletonRows />}>
      <SessionTrace session={session} query={timeline} />
    </Suspense>
  );
  return (
    <Page
      title={title}
      about={<FactsLine session={session} agent={agent} timeline={timeline} />}
      actions={
        <>
          <span className="session-status">
            <SessionStatus session={session} />
          </span>
          <DecideLink session={session} onShow={() => show('conversation')} />
          {may('write') && !isPhone && (
            <Button onClick={() => setSharing(true)}>
              <Share2 aria-hidden="true" /> Share
            </Button>
          )}
          {tab === 'conversation' && (
            <Button
              className="icon trace-toggle"
              aria-label="Trace beside the conversation"
              aria-pressed={hasTrace}
              title={hasTrace ? 'Hide the trace' : 'Show the trace'}
              onClick={toggleTrace}
            >
              <PanelRight aria-hidden="true" />
            </Button>
          )}
          <SessionMenu
            session={session}
            {...(isPhone && may('write') && { onShare: () => setSharing(true) })}
            onDeleted={() => void navigate({ to: '/$organizationId/sessions', params: { organizationId } })}
          />
        </>
      }
    >
      <div className="session-page">
        <Tabs
          label="Session views"
          value={tab}
          onChange={(next) => void show(next)}
          tabs={[
            {
              value: 'conversation',
              label: 'Conversation',
              content: (
                <SplitPanes
                  name="session"
                  label="Width of the conversation"
                  second={hasTrace ? <aside aria-label="Trace">{trace}</aside> : undefined}
                >
                  <div className="session-view">
                    <LiveConversation
                      session={session}
                      followed={followed}
                      timeline={timeline}
                      unsent={unsent}
                      goTo={turn}
                    />
                  </div>
                </SplitPanes>
              ),
            },
            { value: 'trace', label: 'Trace', content: trace },
            {
              value: 'chunks',
              label: 'Chunks',
              content: (
                <Suspense fallback={<SkeletonRows />}>
                  <Chunks session={session} liveCursor={followed.cursor} />
                </Suspense>
              ),
            },
            {
              value: 'files',
              label: 'Files',
              content: (
                <Suspense fallback={<SkeletonRows />}>
                  <SessionFiles followed={followed} />
                </Suspense>
              ),
            },
            {
              value: 'webhooks',
              label: 'Webhooks',
              content: (
                <Suspense fallback={<SkeletonRows />}>
                  <SessionDeliveries session={session} />
                </Suspense>
              ),
            },
            {
              value: 'details',
              label: 'Details',
              content: (
                <Suspense fallback={<SkeletonRows />}>
                  <SessionDetails session={session} agent={agent} />
                </Suspense>
              ),
            },
          ]}
        />
      </div>
      {isSharing && (
        <Suspense>
          <ShareDialog session={session} onClose={() => setSharing(false)} />
        </Suspense>
      )}
    </Page>
  );
}

const TRACE = 'signalbox.session-trace';
