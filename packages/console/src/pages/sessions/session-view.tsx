// A live session: the conversation, the current status and the message box.
import type { Session, SessionTurn } from '@signalbox/client';
import { ArrowDown } from 'lucide-react';
import { useEffect, useMemo, useRef } from 'react';
import { type ListQuery, useList, useMorePages } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Await } from '../../ui/page.tsx';
import { Composer } from './composer.tsx';
import type { Entry } from './conversation.ts';
import { Conversation } from './conversation-view.tsx';
import type { Followed } from './follow.ts';
import { useFollowEnd } from './follow-end.ts';
import { SessionStatus } from './session-status.tsx';
import { useShownPart } from './shown-part.ts';
import { type UnsentStore, useUnsentStore } from './unsent-message.ts';
import { type FollowedSession, isEnded, useAgent, useFollowing, useSession } from './use-session.ts';
import './session.css';

/** The timeline, newest turn first. */
export function useTurns(sessionId: string) {
  return useList(['sessions', sessionId, 'turns'], (client, { cursor }) =>
    client.sessions.turns(sessionId, { limit: TURN_ROWS, ...(cursor && { cursor }) }),
  );
}

// Each turn includes all of its operations.
const TURN_ROWS = 25;

const none: readonly SessionTurn[] = [];

/** The loaded turns. Loads more until the first shown turn is among them, because each says why it ended. */
export function useTurnsFrom(
  first: number | null | undefined,
  timeline: ListQuery<SessionTurn>,
): readonly SessionTurn[] {
  const { data: turns = none } = timeline;
  useMorePages(timeline, first != null && first < (turns.at(-1)?.turn ?? 0));
  return turns;
}

/** A session that scrolls within its own panel, such as next to the form of an agent. */
export function SessionView({ sessionId, isWatched = false }: { sessionId: string; isWatched?: boolean }) {
  const query = useSession(sessionId);
  return (
    <Await query={{ ...query, error: query.data ? undefined : query.error }}>
      {(session) => <Contained session={session} isWatched={isWatched} key={sessionId} />}
    </Await>
  );
}

function Contained({ session, isWatched }: { session: Session; isWatched: boolean }) {
  const followed = useFollowing(session);
  const timeline = useTurns(session.sessionId);
  const unsent = useUnsentStore();
  return (
    <div className="session-view contained">
      <LiveConversation
        session={session}
        followed={followed}
        timeline={timeline}
        unsent={unsent}
        hasStatus
        isWatched={isWatched}
      />
    </div>
  );
}

/** The conversation with its status and the message box. */
export function LiveConversation({
  session,
  followed,
  timeline,
  unsent,
  after = 0,
  goTo,
  hasStatus = false,
  isWatched = false,
}: {
  session: Session;
  followed: FollowedSession;
  timeline: ListQuery<SessionTurn>;
  unsent: UnsentStore;
  /** Turns up to this one are left out. */
  after?: number;
  /** The turn that a link leads to. */
  goTo?: number | undefined;
  /** Shows the status below the conversation, for a place without a header. */
  hasStatus?: boolean;
  /** Without the message box. */
  isWatched?: boolean;
}) {
  const content = useRef<HTMLElement>(null);
  const turns = useTurnsFrom(followed.entries[0]?.turn, timeline);
  const { entries: all } = followed;
  const entries = useMemo(() => entriesAfter(all, after), [all, after]);
  const part = useShownPart(entries);
  const { isAway, toEnd } = useFollowEnd(content, !isEnded(session) && goTo === undefined, part);
  const isLong = followed.isCaughtUp && followed.hasOlder;
  const wasLong = useRef(false);
  // An ended session opens at its start if that is loaded, else at its end.
  useEffect(() => {
    if (isLong && !wasLong.current && isEnded(session) && goTo === undefined) toEnd();
    wasLong.current ||= followed.isCaughtUp;
  }, [isLong, followed.isCaughtUp, session, goTo, toEnd]);
  return (
    <>
      <div className="scroll">
        <Conversation
          session={session}
          followed={followed}
          entries={entries}
          part={part}
          turns={turns}
          content={content}
          after={after}
          goTo={goTo}
        />
      </div>
      <div className="talk-foot">
        {isAway && (
          <div className="to-end">
            <Button small onClick={toEnd}>
              <ArrowDown aria-hidden="true" /> Jump to latest
            </Button>
          </div>
        )}
        <div className="row small state">
          {hasStatus && <SessionStatus session={session} />}
          <ByWorker session={session} />
          <Connection followed={followed} />
        </div>
        {!isWatched && <Composer session={session} unsent={unsent} onSent={followed.refresh} />}
      </div>
    </>
  );
}

function entriesAfter(entries: readonly Entry[], after: number): readonly Entry[] {
  if (after === 0) return entries;
  const from = entries.findIndex(({ turn }) => turn === null || turn > after);
  return from === -1 ? [] : entries.slice(from);
}

/** Names the queue if a worker runs the turn. */
function ByWorker({ session: { agentId, status } }: { session: Session }) {
  const model = useAgent(agentId).data?.model;
  if (status !== 'running' || model?.provider !== 'worker') return null;
  return (
    <span className="quiet">
      by your worker, from the queue <code>{model.queue}</code>
    </span>
  );
}

/** Says that the connection to the service is lost. */
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
