import type { AssistantMessage, PendingApproval, SessionMessage, ToolPart, UseSession } from '@signalbox/react';
import { memo, useLayoutEffect, useRef } from 'react';

export function Conversation({ session }: { session: UseSession }) {
  const { messages, status, isBusy, hasEarlier, isLoadingEarlier, loadEarlier, pendingApprovals, decide } = session;
  const scroller = useScrollAtEnd(messages);
  const last = messages.at(-1);
  const hasNoReply = last?.role === 'user' ? last.status === 'sent' : last?.parts.length === 0;
  return (
    <main className="conversation" ref={scroller}>
      <div role="log" aria-label="Conversation" aria-busy={status === 'loading'}>
        {hasEarlier && (
          <button
            type="button"
            className="button earlier"
            disabled={isLoadingEarlier}
            onClick={() => void loadEarlier()}
          >
            Earlier messages
          </button>
        )}
        {messages.map((message) => (
          <Message message={message} key={message.id} />
        ))}
        {pendingApprovals.map((approval) => (
          <Approval approval={approval} decide={decide} key={approval.operationId} />
        ))}
        {isBusy && hasNoReply && (
          <p className="thinking">
            <span className="hidden">Working</span>
            <i />
            <i />
            <i />
          </p>
        )}
      </div>
    </main>
  );
}

/** Stays at the end while text grows, unless the user has scrolled up. */
function useScrollAtEnd(messages: readonly SessionMessage[]) {
  const scroller = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = scroller.current!;
    const onScroll = () => {
      isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 60;
    };
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => element.removeEventListener('scroll', onScroll);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when they have changed
  useLayoutEffect(() => {
    if (isAtEnd.current) scroller.current!.scrollTop = scroller.current!.scrollHeight;
  }, [messages]);
  return scroller;
}

/** Only the message that changes is rendered again, because all others are the same objects as before. */
const Message = memo(function Message({ message }: { message: SessionMessage }) {
  if (message.role === 'assistant') return <Reply message={message} />;
  const text = message.parts
    .map((part) => (part.type === 'text' ? part.text : (part.file.filename ?? 'File')))
    .join('\n');
  return (
    <article className={`message user ${message.status}`} aria-label="You">
      <p>{text}</p>
      {message.status === 'failed' && <small>Not sent</small>}
    </article>
  );
});

function Reply({ message }: { message: AssistantMessage }) {
  return (
    <article className="message reply" aria-label="Order desk">
      {message.parts.map((part) => {
        if (part.type === 'tool') return part.state === 'approval' ? null : <ToolCall call={part} key={part.id} />;
        if (part.type === 'text') return <p key={part.id}>{part.text}</p>;
        return (
          <details key={part.id} open={part.isStreaming}>
            <summary>{part.isStreaming ? 'Thinking…' : 'Thought'}</summary>
            <p className="thought">{part.text}</p>
          </details>
        );
      })}
      {message.stopReason === 'interrupted' && <small>Stopped</small>}
    </article>
  );
}

const stateNames: Record<ToolPart['state'], string> = {
  input: 'Preparing',
  approval: 'Waiting for approval',
  running: 'In progress',
  result: 'In progress',
  done: 'Done',
  failed: 'Failed',
  denied: 'Not done',
  unknown: 'Interrupted',
};

const titleOf = (tool: string) => tool.charAt(0).toUpperCase() + tool.slice(1).replaceAll('_', ' ');

function ToolCall({ call }: { call: ToolPart }) {
  return (
    <div className={`call ${call.state}`}>
      <span className="dot" aria-hidden="true" />
      <strong>{titleOf(call.tool)}</strong>
      <span>{stateNames[call.state]}</span>
    </div>
  );
}

function Approval({ approval, decide }: { approval: PendingApproval; decide: UseSession['decide'] }) {
  const { operationId, tool, input, by, isDeciding } = approval;
  return (
    <section className="approval" aria-label={`${titleOf(tool)}?`}>
      <h2>{titleOf(tool)}?</h2>
      <dl>
        {Object.entries((input ?? {}) as Record<string, unknown>).map(([name, value]) => (
          <div key={name}>
            <dt>{titleOf(name)}</dt>
            <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
      {by?.endUser ? (
        <div className="row">
          <button
            type="button"
            className="button primary"
            disabled={isDeciding}
            onClick={() => void decide(operationId, 'approved')}
          >
            Approve
          </button>
          <button
            type="button"
            className="button"
            disabled={isDeciding}
            onClick={() => void decide(operationId, 'denied', { reason: 'The customer said no.' })}
          >
            Deny
          </button>
        </div>
      ) : (
        <p className="quiet">A colleague of ours has to approve this. You need not wait here.</p>
      )}
    </section>
  );
}
