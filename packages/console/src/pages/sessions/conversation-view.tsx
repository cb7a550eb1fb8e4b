// The conversation for reading: messages, tool calls at their places, and why a turn ended.
import type { Session, SessionTurn, TurnOperation } from '@signalbox/client';
import { isOver } from '@signalbox/client/conversation';
import { Link } from '@tanstack/react-router';
import { Bot, Link2, Split, UserRound } from 'lucide-react';
import { Fragment, lazy, memo, type RefObject, Suspense, useCallback, useEffect, useMemo, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { SkeletonRows } from '../../ui/skeleton.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { Call } from './call.tsx';
import { Compactions } from './compactions.tsx';
import { type Entry, operationIdOf, type UserEntry } from './conversation.ts';
import { Earlier, KeepPlace, Later } from './earlier.tsx';
import { FileView } from './file-view.tsx';
import { AgentText, MessageText } from './message.tsx';
import { ModelWait } from './model-wait.tsx';
import { stopReasonText } from './session-text.ts';
import type { ShownPart } from './shown-part.ts';
import { SpokenAloud } from './spoken-aloud.tsx';
import { useApprovals } from './use-approvals.ts';
import { useCopyLink } from './use-copy-link.ts';
import { type FollowedSession, isEnded, useAgent, useChildren } from './use-session.ts';

const SessionErrorNotice = lazy(async () => ({
  default: (await import('./session-error.tsx')).SessionErrorNotice,
}));
const ForkDialog = lazy(async () => ({ default: (await import('./fork-dialog.tsx')).ForkDialog }));

// Loads earlier messages before these are shown.
const READ_AHEAD_ENTRIES = 200;

export const Conversation = memo(function Conversation({
  session,
  followed,
  entries,
  part,
  turns,
  content,
  after,
  goTo,
}: {
  session: Session;
  followed: FollowedSession;
  entries: readonly Entry[];
  /** The entries that are in the page. */
  part: ShownPart;
  /** The element that grows. */
  content: RefObject<HTMLElement | null>;
  /** The newest turns: why they ended, and which calls opened child sessions. */
  turns: readonly SessionTurn[];
  /** Turns up to this one are left out. */
  after: number;
  /** The turn that a link names. */
  goTo?: number | undefined;
}) {
  const { may } = useOrganization();
  const { entries: all, queued, growing, isCaughtUp, error } = followed;
  const { sessionId, waitingFor, forkedFrom } = session;
  const [forked, setForked] = useState<ForkedEntry>();
  const { from, to, hasLater } = part;
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
  const operations = useMemo(() => {
    const called = turns.flatMap(({ operations: all }) => all).filter(({ kind }) => kind === 'tool');
    return new Map(called.map((one): [string | null, TurnOperation] => [one.toolCallId, one]));
  }, [turns]);
  const agent = useAgent(session.agentId).data;
  // By the agent's newest version: the output of an older version without a schema is not JSON.
  const isStructured = (agent?.outputSchema ?? null) !== null;
  const awaited = useMemo(() => new Set(waitingFor?.toolCallIds), [waitingFor]);
  const shown = useMemo(() => entries.slice(from, to), [entries, from, to]);
  // The compaction of a turn that has no message of its own is shown after the turn before.
  const compacted = useMemo(
    () => turns.filter((turn) => turn.operations.some(({ compaction }) => compaction)),
    [turns],
  );
  // What is before the first entry is left out as well.
  const hasOlder = followed.hasOlder && (all[0]?.turn ?? 0) > after;
  const { readOlder } = followed;
  const isNearStart = from < READ_AHEAD_ENTRIES;
  const { showEarlier: extend } = part;
  const showEarlier = useCallback(() => {
    extend();
    if (isNearStart && hasOlder) readOlder();
  }, [extend, isNearStart, hasOlder, readOlder]);

  useTurnOfLink({ goTo, entries, hasOlder: followed.hasOlder, isCaughtUp, readOlder, part, content });

  return (
    <>
      <section className="conversation" ref={content} aria-label="Conversation" tabIndex={-1}>
        <h2 className="visually-hidden">Messages</h2>
        {error != null && <ErrorNotice error={error} retry={async () => location.reload()} />}
        {(from > 0 || hasOlder) && isCaughtUp && (
          <Earlier followed={followed} first={shown[0]?.key} show={showEarlier} content={content} />
        )}
        {shown.length === 0 &&
          queued.length === 0 &&
          (isCaughtUp ? <Nothing session={session} isRest={after > 0} /> : <SkeletonRows />)}
        <KeepPlace first={shown[0]?.key} ends={ends} hasLater={hasLater} content={content} />
        <ol className="entries">
          {shown.map((entry, index) => (
            <Fragment key={entry.key}>
              {isAgentsFirst(shown, index) && (
                <li className="speaker" data-kind="speaker">
                  <Bot aria-hidden="true" /> <PlainText text={agent?.name ?? 'Agent'} />
                </li>
              )}
              <li data-kind={entry.kind} data-turn={entry.turn ?? undefined}>
                {entry.kind === 'user' ? (
                  <Said entry={entry} session={session} {...(may('write') && { onFork: setForked })} />
                ) : entry.kind === 'reasoning' ? (
                  <Reasoning text={entry.text} isGrowing={growing.has(entry.key)} />
                ) : entry.kind === 'text' ? (
                  <AgentText
                    text={entry.text}
                    sources={entry.sources}
                    isGrowing={growing.has(entry.key)}
                    isStructured={isStructured}
                  />
                ) : (
                  <Call
                    call={entry}
                    sessionId={sessionId}
                    approval={approvals.get(operationIdOf(entry))}
                    operation={operations.get(entry.key)}
                    isAwaited={awaited.has(entry.key)}
                    child={children.get(entry.key) ?? null}
                  />
                )}
              </li>
              {entry.kind === 'user' && !entry.isRepair && <Compactions turns={[ends.get(entry.turn!)]} />}
              {isLastOfTurn(entries, from + index) && <TurnEnd turn={ends.get(entry.turn!)} session={session} />}
              {isLastOfTurn(entries, from + index) && (
                <Compactions turns={turnsBetween(compacted, entry.turn!, entries[from + index + 1]?.turn)} />
              )}
              {forkedFrom && entry.turn === forkedFrom.turn && isLastOfTurn(entries, from + index) && (
                <ForkedHere session={session} from={forkedFrom} />
              )}
            </Fragment>
          ))}
          {!hasLater && session.status === 'running' && growing.size === 0 && isThinking(entries) && (
            <li className="thinking" aria-hidden="true">
              <span />
            </li>
          )}
          {(hasLater ? [] : queued).map((entry) => (
            <li data-kind="user" key={entry.key}>
              <Said entry={entry as UserEntry} session={session} />
            </li>
          ))}
        </ol>
        {hasLater && <Later show={part.showLater} content={content} />}
        {!hasLater && <ModelWait session={session} />}
        {session.error && !hasLater && (
          <Suspense>
            <SessionErrorNotice session={session} entries={all} />
          </Suspense>
        )}
      </section>
      {forked && (
        <Suspense>
          <ForkDialog session={session} entry={forked} onClose={() => setForked(undefined)} />
        </Suspense>
      )}
      <SpokenAloud entries={entries} growing={growing} isCaughtUp={isCaughtUp && areThere} approvals={approvals} />
    </>
  );
});

/** Turns without a message: a caller asked for a summary. */
function turnsBetween(turns: readonly SessionTurn[], after: number, before: number | null | undefined): SessionTurn[] {
  return turns.filter(({ turn }) => turn > after && (before == null || turn < before)).toReversed();
}

/** Whether the agent begins to speak here. */
function isAgentsFirst(entries: readonly Entry[], index: number): boolean {
  return entries[index]!.kind !== 'user' && (entries[index - 1]?.kind ?? 'user') === 'user';
}

/** Whether the model works and shows nothing of it: no text, and no call that runs. */
function isThinking(entries: readonly Entry[]): boolean {
  const last = entries.at(-1);
  return last !== undefined && (last.kind !== 'call' || isOver(last));
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
  function Said({
    entry,
    session: { sessionId, endUser },
    onFork,
  }: {
    entry: UserEntry;
    session: Session;
    onFork?: (entry: ForkedEntry) => void;
  }) {
    const { turn, text, files, createdAt, isRepair } = entry;
    const copyLink = useCopyLink(sessionId);
    return (
      <div className="said">
        <div className="speaker">
          <UserRound aria-hidden="true" />
          <strong>
            {isRepair ? 'Signalbox to the model' : <PlainText text={endUser?.name ?? endUser?.id ?? 'User'} />}
          </strong>
          <Time at={createdAt} />
          {turn !== null && !isRepair && <span className="turn-number">turn {turn}</span>}
          {turn === null && <Badge>queued</Badge>}
        </div>
        {files.map((file, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a message never changes, and may name a file twice
          <FileView file={file} key={index} />
        ))}
        <MessageText
          text={text}
          actions={
            turn !== null && (
              <>
                <Button small look="bare" aria-label={`Copy link to turn ${turn}`} onClick={() => void copyLink(turn)}>
                  <Link2 aria-hidden="true" /> Link
                </Button>
                {onFork && !isRepair && (
                  <Button
                    small
                    look="bare"
                    aria-label={`Fork at turn ${turn}`}
                    onClick={() => onFork({ ...entry, turn })}
                  >
                    <Split aria-hidden="true" /> Fork
                  </Button>
                )}
              </>
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
      <summary>{isGrowing ? 'Reasoning…' : 'Reasoning'}</summary>
      <PlainText text={text} />
    </details>
  );
});

function TurnEnd({ turn, session }: { turn: SessionTurn | undefined; session: Session }) {
  if (!turn) return null;
  if (turn.status === 'cancelled') return <li className="quiet small">The turn ended with the session.</li>;
  if (turn.stopReason === null || turn.stopReason === 'endTurn') return null;
  // The notice below the last turn says more.
  if (turn.turn === session.turn && session.error) return null;
  return (
    <li className="quiet small">
      {stopReasonText[turn.stopReason]}{' '}
      {turn.error && (
        <>
          <PlainText text={turn.error.message} /> <code>{turn.error.code}</code>
        </>
      )}
    </li>
  );
}

/** Scrolls once to the turn that a link names, after its messages are loaded. */
function useTurnOfLink({
  goTo,
  entries,
  hasOlder,
  isCaughtUp,
  readOlder,
  part,
  content,
}: Pick<FollowedSession, 'hasOlder' | 'isCaughtUp' | 'readOlder'> & {
  goTo: number | undefined;
  entries: readonly Entry[];
  part: ShownPart;
  content: RefObject<HTMLElement | null>;
}) {
  const [isDone, setDone] = useState(goTo === undefined);
  const first = entries[0]?.turn ?? undefined;
  useEffect(() => {
    if (isDone || goTo === undefined || !isCaughtUp || first === undefined) return;
    if (first > goTo && hasOlder) return void readOlder();
    const index = entries.findIndex(({ turn }) => turn === goTo);
    if (index !== -1 && (index < part.from || index >= part.to)) return part.show(index);
    const element = content.current?.querySelector(`[data-turn="${goTo}"]`);
    if (!element) return;
    setDone(true);
    element.scrollIntoView({ block: 'start' });
    element.toggleAttribute('data-linked', true);
  });
}
