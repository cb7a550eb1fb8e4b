// A page with `useChat` of the AI SDK. Its address gets the session, so that a reload continues it.
import { useChat } from '@ai-sdk/react';
import { hasAnswers, type SignalboxMetadata, SignalboxTransport } from '@signalbox/react/ai-sdk';
import { isToolUIPart, type UIMessage } from 'ai';
import { type ReactNode, useState } from 'react';
import type { AppProps } from './app.tsx';

interface ChatProps {
  id: string;
  messages: UIMessage<SignalboxMetadata>[];
  transport: SignalboxTransport;
}

export async function loadChat({ agentId, sessionId, client }: AppProps): Promise<ReactNode> {
  const transport = new SignalboxTransport({
    client,
    open: { agentId, environment: 'production' },
    onSession: (opened) => history.replaceState(null, '', `${location.search}&session=${opened.sessionId}`),
  });
  const id = sessionId ?? crypto.randomUUID();
  return <Chat id={id} messages={await transport.load(id)} transport={transport} />;
}

function Chat({ id, messages, transport }: ChatProps) {
  const chat = useChat({ id, messages, resume: true, transport, sendAutomaticallyWhen: hasAnswers });
  const [text, setText] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void chat.sendMessage({ text });
        setText('');
      }}
    >
      <p role="status">{chat.error?.message ?? chat.status}</p>
      <ul>
        {chat.messages.map((message) => (
          <li key={message.id}>
            {message.role}:{' '}
            {message.parts.map((part) => {
              if (part.type === 'text') return part.text;
              if (!isToolUIPart(part)) return null;
              const { toolCallId, state, approval } = part;
              if (state !== 'approval-requested') return `[${state}]`;
              const approve = () => chat.addToolApprovalResponse({ id: approval.id, approved: true });
              return (
                <button type="button" key={toolCallId} onClick={() => void approve()}>
                  Approve
                </button>
              );
            })}
          </li>
        ))}
      </ul>
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="button" onClick={() => void chat.stop()}>
        Stop
      </button>
    </form>
  );
}
