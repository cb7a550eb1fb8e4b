// A Session, live: the conversation, what it is at, and the message box.
import type { Session, SessionTurn } from '@signalbox/client';
import { useEffect, useRef, useState } from 'react';
import { type ListQuery, useList } from '../../organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Await } from '../../ui/page.tsx';
import { Interrupt } from './actions.tsx';
import { Composer, type Draft, emptyDraft } from './composer.tsx';
import { Conversation } from './conversation-view.tsx';
import { useAgent } from './facts.tsx';
import type { Followed } from './follow.ts';
import { useFollowEnd } from './follow-end.ts';
import { waitingText } from './session-text.ts';
import { type FollowedSession, isEnded, useFollowing, useSession } from './use-session.ts';
import './sessions.css';

/** The timeline, newest turn first. */
export function useTurns(sessionId: string) {
  return useList(['sessions', sessionId, 'turns'], (client, { cursor }) =>
    client.sessions.turns(sessionId, { limit: TURN_ROWS, ...(cursor && { cursor }) }),
  );
}

// Each has all of its operations.
const TURN_ROWS = 25;

const none: readonly SessionTurn[] = [];

/** Those that are known, of which more are asked for until this one is there: each says why it ended. */
function useTurnsFrom(first: number | null | undefined, timeline: ListQuery<SessionTurn>): readonly SessionTurn[] {
  const { data: turns = none, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = timeline;
  const isBehind = first != null && first < (turns.at(-1)?.turn ?? 0);
  const mayAsk = hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (isBehind && mayAsk) void fetchNextPage();
  }, [isBehind, mayAsk, fetchNextPage]);
  return turns;
}

/** A Session in a place of its own beside something else, which it scrolls within: beside the form of an Agent, for one. */
export function SessionView({ sessionId }: { sessionId: string }) {
  const query = useSession(sessionId);
  return (
    <Await query={{ ...query, error: query.data ? undefined : query.error }}>
      {(session) => <Contained session={session} key={sessionId} />}
    </Await>
  );
}

function Contained({ session }: { session: Session }) {
  const followed = useFollowing(session);
  const timeline = useTurns(session.sessionId);
  const [draft, setDraft] = useState(emptyDraft);
  return (
    <div className="session-view contained">
      <LiveConversation session={session} followed={followed} timeline={timeline} draft={draft} onDraft={setDraft} />
    </div>
  );
}

/** The conversation with what stands below it. */
export function LiveConversation({
  session,
  followed,
  timeline,
  draft,
  onDraft,
}: {
  session: Session;
  followed: FollowedSession;
  timeline: ListQuery<SessionTurn>;
  draft: Draft;
  onDraft: (draft: Draft) => void;
}) {
  const content = useRef<HTMLElement>(null);
  const turns = useTurnsFrom(followed.entries[0]?.turn, timeline);
  const { isAway, toEnd } = useFollowEnd(content, !isEnded(session));
  const isLong = followed.isCaughtUp && followed.hasOlder;
  const wasLong = useRef(false);
  // What has ended is read from its beginning where that is there, else from its end.
  useEffect(() => {
    if (isLong && !wasLong.current && isEnded(session)) toEnd();
    wasLong.current ||= followed.isCaughtUp;
  }, [isLong, followed.isCaughtUp, session, toEnd]);
  return (
    <>
      <div className="scroll">
        <Conversation session={session} followed={followed} turns={turns} content={content} />
      </div>
      <div className="talk-foot">
        {isAway && (
          <div className="to-end">
            <Button small onClick={toEnd}>
              Jump to end
            </Button>
          </div>
        )}
        <div className="row apart">
          <div className="row small">
            <Status value={session.status} /> <span className="quiet">{waitingText(session)}</span>
            <ByWorker session={session} />
            <Connection followed={followed} />
          </div>
          <div className="row">
            <Interrupt session={session} />
          </div>
        </div>
        <Composer session={session} draft={draft} onDraft={onDraft} onSent={followed.refresh} />
      </div>
    </>
  );
}

/** Whose turn it is, where that is nobody's here. */
function ByWorker({ session: { agentId, status } }: { session: Session }) {
  const model = useAgent(agentId).data?.model;
  if (status !== 'running' || model?.provider !== 'worker') return null;
  return (
    <span className="quiet">
      by your worker, from the queue <code>{model.queue}</code>
    </span>
  );
}

/** A quiet word while the service is away. */
function Connection({ followed: { connection } }: { followed: Followed }) {
  return (
    <span role="status" className="quiet">
      {connection === 'lost' && (
        <>
          <span className="spinner" aria-hidden="true" /> Connection lost. Reconnecting…
        </>
      )}
    </span>
  );
}
