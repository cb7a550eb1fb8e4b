import type { Session } from '@signalbox/client';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { useAgentNames } from '../../agent-names.ts';
import { useOrganization } from '../../organization.tsx';
import { Loading } from '../../ui/list.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { SessionMenu } from './actions.tsx';
import { emptyDraft } from './composer.tsx';
import { Children, Facts, Forks, useAgent } from './facts.tsx';
import { sessionSearch } from './search-params.ts';
import { SessionStatus } from './session-status.tsx';
import { LiveConversation, useTurns } from './session-view.tsx';
import { useFollowing, useSession } from './use-session.ts';
import './sessions.css';

// Loaded on demand with the virtual list, which only these views need.
const SessionTrace = lazy(async () => ({ default: (await import('./trace/session-trace.tsx')).SessionTrace }));
const Chunks = lazy(async () => ({ default: (await import('./chunks.tsx')).Chunks }));

export function SessionPage() {
  const { sessionId } = useParams({ from: '/$organizationId/sessions/$sessionId' });
  const query = useSession(sessionId);
  if (query.data) return <Shown session={query.data} key={sessionId} />;
  return (
    <Page title="Session">
      <Await query={query}>{() => null}</Await>
    </Page>
  );
}

function Shown({ session }: { session: Session }) {
  const { organizationId } = useOrganization();
  const { sessionId } = session;
  const { tab = 'conversation' } = sessionSearch(useSearch({ from: '/$organizationId/sessions/$sessionId' }));
  const navigate = useNavigate();
  const followed = useFollowing(session);
  const timeline = useTurns(sessionId);
  const agent = useAgent(session.agentId).data;
  const names = useAgentNames();
  const [draft, setDraft] = useState(emptyDraft);
  return (
    <Page
      title={agent ? `Session of ${agent.name}` : 'Session'}
      about={
        <>
          <SessionStatus session={session} />
          {session.waitingFor?.expiresAt && (
            <>
              , expires <Time at={session.waitingFor.expiresAt} />
            </>
          )}
          {session.waitingFor?.retryAt && (
            <>
              , next attempt <Time at={session.waitingFor.retryAt} />. {session.waitingFor.error?.message}
            </>
          )}
        </>
      }
      actions={
        <SessionMenu
          session={session}
          onDeleted={() => void navigate({ to: '/$organizationId/sessions', params: { organizationId } })}
        />
      }
    >
      <div className="session-page">
        <div className="stack session-main">
          <Tabs
            label="Session views"
            value={tab}
            onChange={(next) =>
              void navigate({
                to: '.',
                search: (before) => ({ ...before, tab: next === 'conversation' ? undefined : next }),
                resetScroll: false,
              })
            }
            tabs={[
              {
                value: 'conversation',
                label: 'Conversation',
                content: (
                  <div className="session-view">
                    <LiveConversation
                      session={session}
                      followed={followed}
                      timeline={timeline}
                      draft={draft}
                      onDraft={setDraft}
                    />
                  </div>
                ),
              },
              {
                value: 'timeline',
                label: 'Timeline',
                content: (
                  <Suspense fallback={<Loading />}>
                    <SessionTrace session={session} query={timeline} onStep={() => {}} />
                  </Suspense>
                ),
              },
              {
                value: 'chunks',
                label: 'Chunks',
                content: (
                  <Suspense fallback={<Loading />}>
                    <Chunks session={session} liveCursor={followed.cursor} />
                  </Suspense>
                ),
              },
            ]}
          />
        </div>
        <aside className="session-facts stack" aria-label="About this session">
          <details className="card" open={matchMedia('(min-width: 1100px)').matches}>
            <summary>About this session</summary>
            <Facts session={session} agent={agent} />
            <Children sessionId={sessionId} nameOf={(agentId) => names.get(agentId)} />
            <Forks sessionId={sessionId} />
          </details>
        </aside>
      </div>
    </Page>
  );
}
