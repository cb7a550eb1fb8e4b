// A page with two components that show the same session. The address names the agent and, if there is one, the session.
import { Signalbox } from '@signalbox/client';
import { useSession } from '@signalbox/react';
import { useState } from 'react';

export interface AppProps {
  agentId: string;
  sessionId: string | null;
  client: Signalbox;
}

export function App({ agentId, sessionId: given, client }: AppProps) {
  const [sessionId, setSessionId] = useState(given);
  const [isShown, setIsShown] = useState(true);
  // A new object and new functions in each render, as pages have them.
  const options = { client, agentId, environment: 'production', sessionId };
  const badge = useSession(options);
  return (
    <main>
      <p role="status">
        {badge.status} {badge.messages.length}
      </p>
      <button type="button" onClick={() => setIsShown(!isShown)}>
        {isShown ? 'Hide' : 'Show'}
      </button>
      <button type="button" onClick={() => setSessionId(badge.sessionId)}>
        Remember
      </button>
      <button type="button" onClick={() => setSessionId(null)}>
        New
      </button>
      {isShown && <Conversation {...options} />}
    </main>
  );
}

function Conversation(options: AppProps & { environment: string }) {
  const { messages, send, sessionId } = useSession(options);
  const [text, setText] = useState('');
  return (
    <form
      data-session={sessionId}
      onSubmit={(event) => {
        event.preventDefault();
        void send(text);
        setText('');
      }}
    >
      <ul>
        {messages.map((message) => (
          <li key={message.id}>
            {message.role}: {message.parts.map((part) => ('text' in part ? part.text : part.type)).join(' ')}
          </li>
        ))}
      </ul>
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
    </form>
  );
}

/** The page's own server adds the key. */
export const clientAt = (baseUrl: string) => new Signalbox({ apiKey: 'sbk_of_the_proxy', baseUrl });
