// The conversation for reading: messages, tool calls at their places, and why a turn ended.
import type { Approval, Session, SessionTurn } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { Fragment, memo, type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { toolTitle } from '../../text-format.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Loading } from '../../ui/list.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { Call } from './call.tsx';
import { Compactions } from './compactions.tsx';
import { type Entry, operationIdOf, type UserEntry } from './conversation.ts';
import { Earlier, KeepPlace } from './earlier.tsx';
import { useAgent, useChildren } from './facts.tsx';
import { FileView } from './file-view.tsx';
import type { Followed } from './follow.ts';
import { ForkDialog } from './fork-dialog.tsx';
import { AgentText, MessageText } from './message.tsx';
import { SessionErrorNotice } from './session-error.tsx';
import { stopReasonText } from './session-text.ts';
import { type FollowedSession, isEnded } from './use-session.ts';

// More entries at once would make the page slow; earlier ones are shown on demand.
const SHOWN_ENTRIES = 200;

export function Conversation({
  session,
  followed,
  turns,
  content,
  after,
}: {
  session: Session;
  followed: FollowedSession;
  /** The element that grows. */
  content: RefObject<HTMLElement | null>;
  /** The newest turns: why they ended, and which calls opened child sessions. */
  turns: readonly SessionTurn[];
  /** Turns up to this one are left out. */
  after: number;
}) {
  const { may } = useOrganization();
  const { entries: all, queued, growing, isCaughtUp, error } = followed;
  const { sessionId, waitingFor, forkedFrom } = session;
  const [forked, setForked] = useState<ForkedEntry>();
  const from = all.findIndex(({ turn }) => turn === null || turn > after);
  const entries = after === 0 ? all : from === -1 ? [] : all.slice(from);
  const [extra, setExtra] = useState(0);
  const { approvals, areThere } = useApprovals(sessionId);
  const ends = useMemo(() => new Map(turns.map((turn) => [turn.turn, turn])), [turns]);
  const childSessions = useChildren(sessionId).data;
  const children = useMemo(() => {
    const known = new Map(childSessions?.map((child) => [child.sessionId, child]));
    const called = turns.flatMap(({ operations }) => operations);
    return new Map(
      called.flatMap(({ toolCallId, childSessionId: id }) =>
        id === null ? [] : [[toolCallId, { sessionId: id, session: known.get(id) }]],
      ),
    );
  }, [turns, childSessions]);
  // By the agent's newest version: the output of an older version without a schema is not JSON.
  const isStructured = (useAgent(session.agentId).data?.outputSchema ?? null) !== null;
  const awaited = useMemo(() => new Set(waitingFor?.toolCallIds), [waitingFor]);
  const hidden = Math.max(0, entries.length - SHOWN_ENTRIES - extra);
  const shown = entries.slice(hidden);
  // What is before the first entry is left out as well.
  const hasOlder = followed.hasOlder && (all[0]?.turn ?? 0) > after;
  const { readOlder } = followed;
  const showEarlier = useCallback(() => {
    setExtra((before) => before + SHOWN_ENTRIES);
    if (hidden <= SHOWN_ENTRIES && hasOlder) readOlder();
  }, [hidden, hasOlder, readOlder]);

  return (
    <>
      <section className="conversation" ref={content} aria-label="Conversation" tabIndex={-1}>
        {error != null && <ErrorNotice error={error} retry={() => location.reload()} />}
        {(hidden > 0 || hasOlder) && isCaughtUp && (
          <Earlier followed={followed} first={shown[0]?.key} show={showEarlier} content={content} />
        )}
        {shown.length === 0 &&
          queued.length === 0 &&
          (isCaughtUp ? <Nothing session={session} isRest={after > 0} /> : <Loading />)}
        <KeepPlace first={shown[0]?.key} ends={ends} content={content} />
        <ol className="entries">
          {shown.map((entry, index) => (
            <Fragment key={entry.key}>
              <li data-kind={entry.kind}>
                {entry.kind === 'user' ? (
                  <Said entry={entry} {...(may('write') && { onFork: setForked })} />
                ) : entry.kind === 'reasoning' ? (
                  <Reasoning text={entry.text} isGrowing={growing.has(entry.key)} />
                ) : entry.kind === 'text' ? (
                  <AgentText text={entry.text} isGrowing={growing.has(entry.key)} isStructured={isStructured} />
                ) : (
                  <Call
                    call={entry}
                    sessionId={sessionId}
                    approval={approvals.get(operationIdOf(entry))}
                    isAwaited={awaited.has(entry.key)}
                    child={children.get(entry.key) ?? null}
                  />
                )}
              </li>
              {entry.kind === 'user' && !entry.isRepair && <Compactions turns={[ends.get(entry.turn!)]} />}
              {isLastOfTurn(shown, index) && <TurnEnd turn={ends.get(entry.turn!)} />}
              {isLastOfTurn(shown, index) && (
                <Compactions turns={turnsBetween(turns, entry.turn!, shown[index + 1]?.turn)} />
              )}
              {forkedFrom && entry.turn === forkedFrom.turn && isLastOfTurn(shown, index) && (
                <ForkedHere session={session} from={forkedFrom} />
              )}
            </Fragment>
          ))}
          {queued.map((entry) => (
            <li data-kind="user" key={entry.key}>
              <Said entry={entry as UserEntry} />
            </li>
          ))}
        </ol>
        <SessionErrorNotice session={session} />
      </section>
      {forked && <ForkDialog session={session} entry={forked} onClose={() => setForked(undefined)} />}
      <SpokenAloud entries={entries} growing={growing} isCaughtUp={isCaughtUp && areThere} approvals={approvals} />
    </>
  );
}

/** Turns without a message: a caller asked for a summary. */
function turnsBetween(turns: readonly SessionTurn[], after: number, before: number | null | undefined): SessionTurn[] {
  return turns.filter(({ turn }) => turn > after && (before == null || turn < before)).toReversed();
}

function isLastOfTurn(entries: readonly Entry[], index: number): boolean {
  return entries[index]!.turn !== null && entries[index + 1]?.turn !== entries[index]!.turn;
}

function Nothing({ session, isRest }: { session: Session; isRest: boolean }) {
  if (isRest) return <p className="quiet">Nothing follows yet.</p>;
  return (
    <p className="quiet">
      {isEnded(session) ? 'This session has no messages.' : 'No messages yet. Send one to start the first turn.'}
    </p>
  );
}

/** Where a fork's own turns begin. */
function ForkedHere({ session: { sessionId }, from }: { session: Session; from: NonNullable<Session['forkedFrom']> }) {
  const { organizationId } = useOrganization();
  return (
    <li className="forked-here row small quiet">
      <span>
        Forked here from <SessionLink sessionId={from.sessionId} />
      </span>
      <Link to="/$organizationId/sessions/$sessionId/compare" params={{ organizationId, sessionId }}>
        Compare
      </Link>
    </li>
  );
}

/** A message that started a turn. */
type ForkedEntry = UserEntry & { turn: number };

const Said = memo(
  function Said({ entry, onFork }: { entry: UserEntry; onFork?: (entry: ForkedEntry) => void }) {
    const { turn, text, files, createdAt, isRepair } = entry;
    return (
      <div className="said">
        <div className="row small quiet">
          <strong>{isRepair ? 'Signalbox to the model' : 'Message'}</strong> <Time at={createdAt} />
          {turn === null && <Badge>queued</Badge>}
        </div>
        {files.map((file, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a message never changes, and may name a file twice
          <FileView file={file} key={index} />
        ))}
        <MessageText
          text={text}
          actions={
            onFork &&
            turn !== null &&
            !isRepair && (
              <Button small look="bare" aria-label={`Fork at turn ${turn}`} onClick={() => onFork({ ...entry, turn })}>
                Fork
              </Button>
            )
          }
        />
      </div>
    );
  },
  (before, after) => before.entry.key === after.entry.key && before.entry.turn === after.entry.turn,
);

/** Closed, because few readers want it. */
const Reasoning = memo(function Reasoning({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  return (
    <details className="quiet small">
      <summary>{isGrowing ? 'Reasoning …' : 'Reasoning'}</summary>
      <PlainText text={text} />
    </details>
  );
});

function TurnEnd({ turn }: { turn: SessionTurn | undefined }) {
  if (!turn) return null;
  if (turn.status === 'cancelled') return <li className="quiet small">The turn ended with the session.</li>;
  if (turn.stopReason === null || turn.stopReason === 'endTurn') return null;
  return (
    <li className="quiet small">
      {stopReasonText[turn.stopReason]} {turn.error && <code>{turn.error.code}</code>}
    </li>
  );
}

// The approvals of the newest calls. In a longer session, older pending approvals are read separately.
const MAX_APPROVALS = 500;

function useApprovals(sessionId: string): { approvals: ReadonlyMap<string, Approval>; areThere: boolean } {
  const { data } = useApiQuery(['approvals', 'of', sessionId], async (client) => {
    const all: Approval[] = [...(await client.approvals.list({ sessionId, status: 'pending', limit: 100 })).data];
    for await (const approval of client.approvals.list({ sessionId, order: 'desc', limit: 100 })) {
      all.push(approval);
      if (all.length >= MAX_APPROVALS) break;
    }
    return all;
  });
  const approvals = useMemo(() => new Map(data?.map((approval) => [approval.operationId, approval])), [data]);
  return { approvals, areThere: data !== undefined };
}

/**
 * For screen readers: each message of the agent when it is complete, and pending approvals. It does not announce what was there
 * before.
 */
function SpokenAloud({
  entries,
  growing,
  isCaughtUp,
  approvals,
}: Pick<Followed, 'entries' | 'growing' | 'isCaughtUp'> & { approvals: ReadonlyMap<string, Approval> }) {
  const known = useRef<Set<string>>(undefined);
  const newest = useRef(0);
  const [spoken, setSpoken] = useState<{ key: string; text: string }[]>([]);
  useEffect(() => {
    if (!isCaughtUp) return;
    if (!known.current) newest.current = entries.at(-1)?.turn ?? 0;
    const sayable = entries.flatMap((entry) => {
      // Messages of earlier turns are not new.
      if (entry.turn === null || entry.turn < newest.current) return [];
      if (entry.kind === 'text' && !growing.has(entry.key)) return [{ key: entry.key, text: entry.text }];
      const isAsked = entry.kind === 'call' && approvals.get(operationIdOf(entry))?.status === 'pending';
      return isAsked ? [{ key: `${entry.key} asks`, text: `${toolTitle(entry.tool)} is waiting for approval` }] : [];
    });
    const fresh = known.current ? sayable.filter(({ key }) => !known.current!.has(key)) : [];
    known.current ??= new Set();
    for (const { key } of sayable) known.current.add(key);
    if (fresh.length > 0) setSpoken((all) => [...all, ...fresh].slice(-5));
  }, [entries, growing, isCaughtUp, approvals]);
  return (
    <div className="visually-hidden" role="log" aria-label="New messages">
      {spoken.map(({ key, text }) => (
        <p key={key}>{text}</p>
      ))}
    </div>
  );
}
