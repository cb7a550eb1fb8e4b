import { StrictMode } from 'react';
import { createRoot, hydrateRoot } from 'react-dom/client';
import { App, clientAt } from './app.tsx';

const query = new URLSearchParams(location.search);
const root = document.getElementById('root')!;
const app = (
  <StrictMode>
    <App agentId={query.get('agent')!} sessionId={query.get('session')} client={clientAt(location.origin)} />
  </StrictMode>
);
if (root.childElementCount > 0) hydrateRoot(root, app);
else createRoot(root).render(app);
