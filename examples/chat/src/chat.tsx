import { type SessionFailure, useSession } from '@signalbox/react';
import { useEffect, useState } from 'react';
import { Composer } from './composer.tsx';
import { Conversation } from './conversation.tsx';
import { runTools } from './tools.ts';

export interface ChatConfig {
  baseUrl: string;
  agentId: string;
  environment: string;
}

/** A session token of this user, from our own backend. */
async function token(): Promise<string> {
  const response = await fetch('/api/token', { method: 'POST' });
  if (!response.ok) throw new Error(`The backend responded with ${response.status}`);
  return await response.text();
}

/** The session is in the address, so that a reload shows it again. */
const sessionInAddress = () => location.hash.slice(1) || null;

export function Chat({ config }: { config: ChatConfig }) {
  const [sessionId, setSessionId] = useState(sessionInAddress);
  const session = useSession({ ...config, token, sessionId });
  const { messages, isBusy, error, connection, status, toolResult } = session;

  useEffect(() => {
    if (session.sessionId === null || session.sessionId === sessionId) return;
    setSessionId(session.sessionId);
    history.replaceState(null, '', `#${session.sessionId}`);
  }, [session.sessionId, sessionId]);
  useEffect(() => {
    const read = () => setSessionId(sessionInAddress());
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  useEffect(() => runTools(messages, toolResult), [messages, toolResult]);

  return (
    <div className="chat">
      <header>
        <h1>Order desk</h1>
        <span className="connection" role="status">
          {connection === 'lost' && 'Reconnecting…'}
        </span>
        <button
          type="button"
          className="button"
          onClick={() => {
            location.hash = '';
          }}
        >
          New chat
        </button>
      </header>
      {messages.length === 0 && status === 'new' ? (
        <Welcome onChoose={session.send} />
      ) : (
        <Conversation session={session} />
      )}
      <footer>
        {error && <Problem error={error} onRetry={session.retry} />}
        <Composer isBusy={isBusy} isEnded={hasEnded(status)} onSend={session.send} onStop={session.stop} />
      </footer>
    </div>
  );
}

const hasEnded = (status: string) => ['completed', 'failed', 'cancelled'].includes(status);

const suggestions = ['Please cancel my order 1017', 'Can I still cancel order 1017?'];

function Welcome({ onChoose }: { onChoose: (text: string) => Promise<boolean> }) {
  return (
    <main className="welcome">
      <h2>How can we help?</h2>
      <p>Ask about an order, or begin with one of these.</p>
      {suggestions.map((text) => (
        <button type="button" className="button" key={text} onClick={() => void onChoose(text)}>
          {text}
        </button>
      ))}
    </main>
  );
}

function Problem({ error, onRetry }: { error: SessionFailure; onRetry: () => Promise<boolean> }) {
  const isGone = error.of === 'session' && error.code === 'not_found';
  return (
    <div className="problem" role="alert">
      <span>{isGone ? 'This chat does not exist, or it is not yours.' : error.message}</span>
      {!isGone && (
        <button type="button" className="button" onClick={() => void onRetry()}>
          Try again
        </button>
      )}
    </div>
  );
}
