// The backend of the page: it serves the page, knows its users, gives each of them session tokens, and receives webhooks. Everything
// else the page does with Signalbox itself.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Signalbox } from '@signalbox/client';
import { agent } from './agent.ts';
import { createReceiver } from './receiver.ts';
import { storeAgent } from './store-agent.ts';

const { HOST = '127.0.0.1', PORT = '5173', SIGNALBOX_PORT = '4500', ...env } = process.env;
const { SIGNALBOX_URL = `http://127.0.0.1:${SIGNALBOX_PORT}` } = env;
const expiresInSeconds = Number(env.TOKEN_SECONDS ?? 900);
/** The service as browsers reach it. */
const baseUrl = env.SIGNALBOX_PUBLIC_URL ?? SIGNALBOX_URL;
if (!env.SIGNALBOX_API_KEY) giveUp('Set SIGNALBOX_API_KEY to a key of the service: npx signalbox keys create --help');
const client = new Signalbox({ apiKey: env.SIGNALBOX_API_KEY, baseUrl: SIGNALBOX_URL });
const agentId = env.AGENT_ID || (await storeAgent(client, agent).catch((error: Error) => giveUp(error.message)));
const environment = 'production';

/** Your own sign-in is in place of this: here each browser is a user of its own. */
const userOf = (cookies = '') => /(?:^|; )user=([\w-]{36})/.exec(cookies)?.[1];

const receiver = env.SIGNALBOX_SIGNING_SECRET ? createReceiver(env.SIGNALBOX_SIGNING_SECRET.split(',')) : undefined;

const server = createServer(async (request, response) => {
  if (request.url === '/webhooks' && receiver) return receiver.node(request, response);
  const user = userOf(request.headers.cookie) ?? randomUUID();
  response.setHeader('set-cookie', `user=${user}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000`);
  if (request.url === '/api/chat') return response.end(JSON.stringify({ baseUrl, agentId, environment }));
  if (request.url !== '/api/token') return page(request, response);
  try {
    const { token } = await client.sessionTokens.create({
      agentId,
      environment,
      endUser: { id: user },
      scopes: ['read', 'send', 'decide', 'open'],
      expiresInSeconds,
    });
    response.end(token);
  } catch (error) {
    console.error(error);
    response.writeHead(502).end();
  }
});
const page = await servePage();

server.once('error', (error: NodeJS.ErrnoException) => {
  giveUp(error.code === 'EADDRINUSE' ? `Port ${PORT} is in use. Set PORT to another one.` : error);
});
server.listen(Number(PORT), HOST, async () => {
  const { port } = server.address() as { port: number };
  const origin = env.PAGE_URL ?? `http://localhost:${port}`;
  // The service accepts tokens only from pages of these origins.
  const { allowedOrigins } = await client.organization.get();
  if (!allowedOrigins.includes(origin)) await client.organization.set({ allowedOrigins: [...allowedOrigins, origin] });
  console.log(`Chat on ${origin}`);
});

function giveUp(reason: string | Error): never {
  console.error(reason);
  process.exit(1);
}

/** The built page with `--production`, otherwise the sources, which reload when they change. */
async function servePage(): Promise<(request: IncomingMessage, response: ServerResponse) => void> {
  if (process.argv.includes('--production')) return (await import('sirv')).default(join(import.meta.dirname, 'dist'));
  const { createServer: createVite } = await import('vite');
  const hmr = { server };
  const vite = await createVite({ root: import.meta.dirname, server: { middlewareMode: true, hmr } });
  return vite.middlewares;
}
