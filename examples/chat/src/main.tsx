import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Chat, type ChatConfig } from './chat.tsx';
import './styles.css';

const config = (await (await fetch('/api/chat')).json()) as ChatConfig;

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Chat config={config} />
  </StrictMode>,
);
