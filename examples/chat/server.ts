// The backend of the page: it serves the page, knows its users, and gives each of them session tokens. Everything else the page does
// with Signalbox itself.
//
//   SIGNALBOX_API_KEY=sbk_… npm start -w examples/chat
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Signalbox } from '@signalbox/client';
import { createServer as createVite } from 'vite';
import { demoAgent } from './demo-agent.ts';

const { SIGNALBOX_API_KEY = '', SIGNALBOX_URL = 'http://127.0.0.1:4500', AGENT_ID, PORT = '5173' } = process.env;
const expiresInSeconds = Number(process.env.TOKEN_SECONDS ?? 900);
const client = new Signalbox({ apiKey: SIGNALBOX_API_KEY, baseUrl: SIGNALBOX_URL });
const agentId = AGENT_ID ?? (await client.agents.create(demoAgent)).agentId;
const environment = 'production';

/** Your own sign-in is in place of this: here each browser is a user of its own. */
const userOf = (cookies = '') => /(?:^|; )user=([\w-]{36})/.exec(cookies)?.[1];

const server = createServer(async (request, response) => {
  const user = userOf(request.headers.cookie) ?? randomUUID();
  response.setHeader('set-cookie', `user=${user}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000`);
  if (request.url === '/api/chat')
    return response.end(JSON.stringify({ baseUrl: SIGNALBOX_URL, agentId, environment }));
  if (request.url !== '/api/token') return vite.middlewares(request, response);
  try {
    const scopes = ['read', 'send', 'decide', 'open'] as const;
    const endUser = { id: user };
    const { token } = await client.sessionTokens.create({
      agentId,
      environment,
      endUser,
      scopes: [...scopes],
      expiresInSeconds,
    });
    response.end(token);
  } catch (error) {
    console.error(error);
    response.writeHead(502).end();
  }
});
const hmr = { server };
const vite = await createVite({ root: import.meta.dirname, server: { middlewareMode: true, hmr } });
server.listen(Number(PORT), '127.0.0.1', async () => {
  const { port } = server.address() as { port: number };
  const origin = `http://localhost:${port}`;
  // The service accepts tokens only from pages of these origins.
  const { allowedOrigins } = await client.organization.get();
  await client.organization.set({ allowedOrigins: [...new Set([...allowedOrigins, origin])] });
  console.log(`Chat on ${origin}`);
});
