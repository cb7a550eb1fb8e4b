// A tool call in the conversation: one line, which opens to its input, who decided, and its outcome.
import type { Approval, Session, TurnOperation } from '@signalbox/client';
import { isOver } from '@signalbox/client/conversation';
import { Link } from '@tanstack/react-router';
import { lazy, memo, Suspense, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { Badge, Status } from '../../ui/badge.tsx';
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
  /** The call's operation in the timeline, if that is loaded. */
  operation: TurnOperation | undefined;
  /** The session waits for a user to give the result. */
  isAwaited: boolean;
  /** The session that the call opened, with its details if they are loaded. */
  child: { sessionId: string; session: Session | undefined } | null;
}) {
  const { organizationId } = useOrganization();
  const [chosen, setChosen] = useState<boolean>();
  const isPending = approval?.status === 'pending';
  const needsPerson = isPending || isAwaited || call.state === 'unknown';
  const isOpen = chosen ?? (needsPerson || call.inputText !== null);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: shortcuts for the buttons in it
    <div className="call" data-waiting={needsPerson || undefined} onKeyDown={pressShortcut}>
      <CallLine call={call} isOpen={isOpen} onToggle={() => setChosen(!isOpen)}>
        <span className="facts-of-call">
          <DecidedBy approval={approval} />
          <Took operation={operation} />
          {call.by === 'provider' && <span>run by the provider</span>}
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
      {call.files.map((file) => (
        <FileView file={file} key={file.fileId} />
      ))}
    </div>
  );
});

function Details({
  call,
  sessionId,
  approval,
  isAwaited,
}: {
  call: CallEntry;
  sessionId: string;
  approval: Approval | undefined;
  isAwaited: boolean;
}) {
  const { key, tool, input, inputText, isEdited, modelInput, state } = call;
  const asked = isEdited ? modelInput : input;
  return (
    <div className="call-details">
      {inputText === null ? (
        <Fold label="Input" value={asked} open>
          <InputView value={asked} />
        </Fold>
      ) : (
        <div aria-busy={state === 'input'}>
          {state === 'input' && <span className="quiet small">Writing the input…</span>} <LongText text={inputText} />
        </div>
      )}
      {isEdited && !approval?.editedInput && (
        <Fold label="Edited input" value={input}>
          <InputView value={input} before={modelInput} />
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
      {state === 'unknown' && (
        <Notice kind="warn">
          <p>This call was interrupted and may have taken effect. Check before you run it again.</p>
        </Notice>
      )}
      <CallResult call={call} />
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
  call: { state, approval: asked, error, isStarted },
  approval,
  isAwaited,
}: {
  call: CallEntry;
  approval: Approval | undefined;
  isAwaited: boolean;
}) {
  const decided = approval?.status ?? asked?.decision;
  if (isOver({ state })) {
    const isRefused = decided === 'denied' || decided === 'expired';
    if (state === 'done') return <Badge tone="good">done</Badge>;
    if (state === 'unknown') return <Badge tone="warn">outcome unknown</Badge>;
    if (isRefused) return <Badge tone="bad">{decided}</Badge>;
    return <Badge tone="bad">{error === null ? 'not run' : 'error'}</Badge>;
  }
  if (isAwaited || state === 'result') return <Badge tone="warn">waiting for result</Badge>;
  if (decided === 'pending') return <Badge tone="warn">waiting for approval</Badge>;
  if (isStarted) return <Badge tone="live">running</Badge>;
  return decided ? <Status value={decided} /> : null;
}
