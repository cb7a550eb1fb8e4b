import { StrictMode } from 'react';
import { createRoot, hydrateRoot } from 'react-dom/client';
import { App, clientAt } from './app.tsx';
import { loadChat } from './chat.tsx';

const query = new URLSearchParams(location.search);
const root = document.getElementById('root')!;
const props = { agentId: query.get('agent')!, sessionId: query.get('session'), client: clientAt(location.origin) };
const app = <StrictMode>{query.has('chat') ? await loadChat(props) : <App {...props} />}</StrictMode>;
if (root.childElementCount > 0) hydrateRoot(root, app);
else createRoot(root).render(app);
