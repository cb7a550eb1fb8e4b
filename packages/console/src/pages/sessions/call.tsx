// A tool call in the conversation: one line, which opens to its input, who decided, and its outcome.
import type { Approval, Session, TurnOperation } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { lazy, memo, Suspense, useState } from 'react';
import { useOrganization } from '../../organization.tsx';
import { Badge, Status, type Tone } from '../../ui/badge.tsx';
import { Notice } from '../../ui/notice.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { duration, Time } from '../../ui/time.tsx';
import { InputView } from '../approvals/input-view.tsx';
import { pressShortcut } from '../approvals/shortcuts.ts';
import { CallLine, CallResult } from './call-parts.tsx';
import { Fold } from './call-values.tsx';
import type { CallEntry } from './conversation.ts';
import { FileView } from './file-view.tsx';
import { SessionStatus } from './session-status.tsx';

// Few calls need one of these.
const ToolResultForm = lazy(async () => ({ default: (await import('./tool-result.tsx')).ToolResultForm }));
const Decision = lazy(async () => ({ default: (await import('../approvals/decision.tsx')).Decision }));

export const Call = memo(function Call({
  call,
  sessionId,
  approval,
  operation,
  isAwaited,
  child,
}: {
  call: CallEntry;
  sessionId: string;
  approval: Approval | undefined;
  /** Of the timeline, if it is loaded. */
  operation: TurnOperation | undefined;
  /** The session waits for a user to give the result. */
  isAwaited: boolean;
  /** The session that the call opened, with its details if they are loaded. */
  child: { sessionId: string; session: Session | undefined } | null;
}) {
  const { organizationId } = useOrganization();
  const [chosen, setChosen] = useState<boolean>();
  const { result, written } = call;
  const isPending = approval?.status === 'pending';
  const needsPerson = isPending || isAwaited || result?.outcomeUnknown === true;
  const isOpen = chosen ?? (needsPerson || written !== undefined);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: shortcuts for the buttons in it
    <div className="call" data-waiting={needsPerson || undefined} onKeyDown={pressShortcut}>
      <CallLine call={call} isOpen={isOpen} onToggle={() => setChosen(!isOpen)}>
        <span className="facts-of-call">
          <DecidedBy approval={approval} />
          <Took operation={operation} />
        </span>
        <State call={call} approval={approval} isAwaited={isAwaited} />
      </CallLine>
      {isOpen && <Details call={call} sessionId={sessionId} approval={approval} isAwaited={isAwaited} />}
      {child && (
        <p className="row child-of-call">
          <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId: child.sessionId }}>
            Child session
          </Link>
          {child.session && (
            <span>
              <SessionStatus session={child.session} />
            </span>
          )}
        </p>
      )}
      {call.files?.map((file) => (
        <FileView file={file} key={file.fileId} />
      ))}
    </div>
  );
});

function Details({
  call: { key, tool, input, editedInput, result, written },
  sessionId,
  approval,
  isAwaited,
}: {
  call: CallEntry;
  sessionId: string;
  approval: Approval | undefined;
  isAwaited: boolean;
}) {
  return (
    <div className="call-details">
      {written === undefined ? (
        <Fold label="Input" value={input} open>
          <InputView value={input} />
        </Fold>
      ) : (
        <div aria-busy="true">
          <span className="quiet small">Writing the input…</span> <LongText text={written} />
        </div>
      )}
      {editedInput !== undefined && !approval?.editedInput && (
        <Fold label="Edited input" value={editedInput}>
          <InputView value={editedInput} before={input} />
        </Fold>
      )}
      {approval && (
        <Suspense>
          <Decision approval={approval} />
        </Suspense>
      )}
      {approval?.status === 'pending' && approval.expiresAt && (
        <p className="quiet small">
          Expires <Time at={approval.expiresAt} />.
        </p>
      )}
      {isAwaited && (
        <Suspense>
          <ToolResultForm sessionId={sessionId} toolCallId={key} tool={tool} />
        </Suspense>
      )}
      {result?.outcomeUnknown && (
        <Notice kind="warn">
          <p>This call was interrupted and may have taken effect. Check before you run it again.</p>
        </Notice>
      )}
      <CallResult result={result} />
    </div>
  );
}

function DecidedBy({ approval }: { approval: Approval | undefined }) {
  const { user } = useOrganization();
  if (!approval?.resolvedBy) return null;
  return (
    <span>
      {approval.status} by{' '}
      <PlainText text={approval.resolvedBy.id === user.userId ? 'you' : approval.resolvedBy.name} />
    </span>
  );
}

function Took({ operation }: { operation: TurnOperation | undefined }) {
  if (!operation?.startedAt || !operation.endedAt) return null;
  return <span>{duration(Date.parse(operation.endedAt) - Date.parse(operation.startedAt))}</span>;
}

function State({
  call: { decision, result, started },
  approval,
  isAwaited,
}: {
  call: CallEntry;
  approval: Approval | undefined;
  isAwaited: boolean;
}) {
  const decided = approval?.status ?? decision;
  const [tone, word]: [Tone | undefined, string] = result
    ? result.outcomeUnknown
      ? ['warn', 'outcome unknown']
      : result.error === undefined
        ? ['good', 'done']
        : decided === 'denied' || decided === 'expired'
          ? ['bad', decided]
          : ['bad', 'error']
    : isAwaited
      ? ['warn', 'waiting for result']
      : decided === 'pending'
        ? ['warn', 'waiting for approval']
        : started
          ? ['live', 'running']
          : [undefined, ''];
  if (word) return <Badge tone={tone}>{word}</Badge>;
  return decided ? <Status value={decided} /> : null;
}
