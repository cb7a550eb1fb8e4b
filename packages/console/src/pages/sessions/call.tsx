// A tool call in the conversation: its input, who decided, and its outcome.
import type { Approval, Session } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { memo, type ReactNode } from 'react';
import { useOrganization } from '../../organization.tsx';
import { toolTitle } from '../../text-format.ts';
import { Badge, Status, type Tone } from '../../ui/badge.tsx';
import { Json } from '../../ui/copy.tsx';
import { Notice } from '../../ui/notice.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { Decision, pressShortcut } from '../approvals/decision.tsx';
import { InputView } from '../approvals/input-view.tsx';
import type { CallEntry } from './conversation.ts';
import { FileView } from './file-view.tsx';
import { SessionStatus } from './session-status.tsx';
import { ToolResultForm } from './tool-result.tsx';

export const Call = memo(function Call({
  call,
  sessionId,
  approval,
  isAwaited,
  child,
}: {
  call: CallEntry;
  sessionId: string;
  approval: Approval | undefined;
  /** The session waits for a user to give the result. */
  isAwaited: boolean;
  /** The session that the call opened, with its details if they are loaded. */
  child: { sessionId: string; session: Session | undefined } | null;
}) {
  const { organizationId } = useOrganization();
  const { tool, input, editedInput, result, written } = call;
  const isPending = approval?.status === 'pending';
  const words = toolTitle(tool);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: shortcuts for the buttons in it
    <div className="call" onKeyDown={pressShortcut}>
      <div className="row apart">
        <h3>
          <PlainText text={words} />{' '}
          {words !== tool && (
            <code className="quiet small">
              <PlainText text={tool} />
            </code>
          )}
        </h3>
        <State call={call} approval={approval} isAwaited={isAwaited} />
      </div>
      {written === undefined ? (
        <Fold label="Input" value={input} open={isPending || isAwaited}>
          <InputView value={input} />
        </Fold>
      ) : (
        <div aria-busy="true">
          <span className="quiet small">Writing the input …</span> <LongText text={written} />
        </div>
      )}
      {editedInput !== undefined && !approval?.editedInput && (
        <Fold label="Edited input" value={editedInput}>
          <InputView value={editedInput} before={input} />
        </Fold>
      )}
      {approval && <Decision approval={approval} />}
      {isPending && approval.expiresAt && (
        <p className="quiet small">
          Expires <Time at={approval.expiresAt} />.
        </p>
      )}
      {child && (
        <p className="row">
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
      {isAwaited && <ToolResultForm sessionId={sessionId} toolCallId={call.key} tool={tool} />}
      {result?.outcomeUnknown && (
        <Notice kind="warn">
          <p>This call was interrupted and may have taken effect. Check before you run it again.</p>
        </Notice>
      )}
      {result?.error !== undefined && (
        <Fold label="Error" value={result.error}>
          <LongText text={result.error} />
        </Fold>
      )}
      {result && 'output' in result && (
        <Fold label="Output" value={result.output}>
          {typeof result.output === 'string' ? <LongText text={result.output} /> : <Json value={result.output} />}
        </Fold>
      )}
      {call.files?.map((file) => (
        <FileView file={file} key={file.fileId} />
      ))}
    </div>
  );
});

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

// Longer values are collapsed.
const SHORT_CHARACTERS = 600;

/** A value that may be long, collapsed behind its label. */
function Fold({
  label,
  value,
  open,
  children,
}: {
  label: string;
  value: unknown;
  open?: boolean;
  children: ReactNode;
}) {
  const size = JSON.stringify(value)?.length ?? 0;
  return (
    <details className="fold" open={open || size <= SHORT_CHARACTERS}>
      <summary>
        {label} {size > SHORT_CHARACTERS && <span className="quiet small">{size.toLocaleString('en')} characters</span>}
      </summary>
      <div className="within">{children}</div>
    </details>
  );
}
