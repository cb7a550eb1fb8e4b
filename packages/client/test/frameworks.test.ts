// The client inside the servers that people use: Express, Fastify, Hono, node:http.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { convertToModelMessages, DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai';
import express from 'express';
import Fastify, { type FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toUIMessageStreamResponse } from '../src/ai-sdk/index.ts';
import { type Envelope, type Signalbox, toEventStreamResponse, webhooks } from '../src/index.ts';
import { clientOf } from './fake-service.ts';

const secret = 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=';
const chunk = (seq: number, more: object) => ({ turn: 1, seq, ...more });
const CHUNKS = [
  chunk(1, { type: 'session.status', status: 'running', waitingFor: null }),
  chunk(2, { type: 'step.started', step: 1, model: 'scripted/test' }),
  chunk(3, { type: 'message.started', messageId: 'msg_1', step: 1 }),
  chunk(4, { type: 'message.chunk', delta: 'Hello\nwörld 😀' }),
  chunk(5, { type: 'turn.completed', stopReason: 'endTurn', usage: { inputTokens: 1 } }),
  chunk(6, { type: 'session.status', status: 'completed', waitingFor: null }),
];

function envelopeAt(seq: number): Envelope {
  return {
    event: 'session.chunks',
    environment: 'production',
    sessionId: 'ses_1',
    agentId: 'agt_1',
    cursor: `turn_1:seq_${seq}`,
    timestamp: '2026-01-01T00:00:00.000Z',
    chunks: [CHUNKS[seq - 1]!],
  } as unknown as Envelope;
}

/** A service with one session, whose stream waits before `holdAt`; `left` resolves when its reader has left. */
async function session(holdAt = Infinity) {
  const left = Promise.withResolvers<void>();
  const cursors: (string | null)[] = [];
  const { client } = await clientOf((response, { url }) => {
    const { pathname, searchParams } = new URL(url, 'http://service');
    if (!pathname.includes('ses_1')) return void response.writeHead(404).end('{}');
    const cursor = searchParams.get('cursor');
    cursors.push(cursor);
    const after = Number(/seq_(\d+)/.exec(cursor ?? '')?.[1] ?? 0);
    if (after === CHUNKS.length) return void response.writeHead(204).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.on('close', left.resolve);
    for (let seq = after + 1; seq <= CHUNKS.length; seq += 1) {
      if (seq === holdAt) return;
      const envelope = envelopeAt(seq);
      response.write(`id: ${envelope.cursor}\nevent: session.chunks\ndata: ${JSON.stringify(envelope)}\n\n`);
    }
    response.end();
  });
  return { client, cursors, left: left.promise };
}

type Get = (path: string, init?: RequestInit) => Promise<Response>;
type Kind = 'events' | 'ui';

function respond(client: Signalbox, kind: Kind, sessionId: string, request: Request): Promise<Response> {
  const stream = client.sessions.stream(sessionId);
  return kind === 'events'
    ? toEventStreamResponse(stream, { request })
    : toUIMessageStreamResponse(stream, { request });
}

function send(client: Signalbox, kind: Kind, sessionId: string, to: ServerResponse): Promise<void> {
  const stream = client.sessions.stream(sessionId);
  return kind === 'events' ? toEventStreamResponse(stream, { to }) : toUIMessageStreamResponse(stream, { to });
}

/** Each server has `/events/:id` and `/ui/:id`. */
const servers: Record<string, (client: Signalbox) => Promise<Get>> = {
  async 'node:http'(client) {
    const { url } = await listen(async (request, to) => {
      const [, kind, id = ''] = request.url!.split('/');
      await send(client, kind as Kind, id, to).catch((error) => to.writeHead(error.status).end());
    });
    return (path, init) => fetch(url + path, init);
  },
  async Express(client) {
    const app = express();
    app.use(express.json());
    app.get('/:kind/:id', async ({ params: { kind, id } }, to) => {
      await send(client, kind as Kind, id, to).catch((error) => to.status(error.status).end());
    });
    const { url } = await listen(app);
    return (path, init) => fetch(url + path, init);
  },
  async Fastify(client) {
    const app = Fastify();
    app.get<{ Params: { kind: Kind; id: string } }>('/:kind/:id', async ({ params: { kind, id } }, reply) => {
      reply.hijack();
      const to = reply.raw;
      await send(client, kind, id, to).catch((error) => to.writeHead(error.status).end());
    });
    onTestFinished(() => app.close());
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return (path, init) => fetch(url + path, init);
  },
  async 'Fastify, with a Response'(client) {
    const app = Fastify();
    app.get<{ Params: { kind: Kind; id: string } }>('/:kind/:id', async ({ params: { kind, id }, raw }, reply) => {
      const headers = new Headers(raw.headers as Record<string, string>);
      const request = new Request('http://here/', { headers });
      return respond(client, kind, id, request).catch((error) => reply.code(error.status).send());
    });
    onTestFinished(() => app.close());
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return (path, init) => fetch(url + path, init);
  },
  async 'Hono, and all that handle a Request'(client) {
    const app = new Hono();
    app.get('/:kind/:id', async (context) => {
      const { kind, id } = context.req.param();
      const response = respond(client, kind as Kind, id!, context.req.raw);
      return response.catch((error) => new Response(null, { status: error.status }));
    });
    return async (path, init) => app.request(path, init);
  },
};

async function listen(listener: Parameters<typeof createServer>[1]): Promise<{ url: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe.each(Object.keys(servers))('in %s', (name) => {
  const serve = servers[name]!;

  test('a session is served as events that resume after the last one, and 204 when nothing follows', async () => {
    const { client, cursors } = await session();
    const get = await serve(client);
    const response = await get('/events/ses_1');
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const events = (await response.text()).split('\n\n').filter((event) => event !== '');
    expect(events[0]).toMatch(/^: connected\nevent: session.chunks\ndata: {.*\nid: turn_1:seq_1$/);
    expect(events.map((event) => JSON.parse(/^data: (.*)$/m.exec(event)![1]!))).toEqual(
      CHUNKS.map((_, index) => envelopeAt(index + 1)),
    );
    const rest = await get('/events/ses_1', { headers: { 'last-event-id': 'turn_1:seq_4' } });
    expect((await rest.text()).match(/^id: .*/gm)).toEqual(['id: turn_1:seq_5', 'id: turn_1:seq_6']);
    const over = await get('/events/ses_1', { headers: { 'last-event-id': 'turn_1:seq_6' } });
    expect([over.status, await over.text()]).toEqual([204, '']);
    expect(cursors).toEqual([null, 'turn_1:seq_4', 'turn_1:seq_6']);
  });

  test('an unknown session fails before anything is written', async () => {
    const get = await serve((await session()).client);
    expect((await get('/events/ses_2')).status).toBe(404);
    expect((await get('/ui/ses_2')).status).toBe(404);
  });

  test.each(['events', 'ui'])('a client that leaves the %s early ends the request to the service', async (kind) => {
    const { client, left } = await session(5);
    const get = await serve(client);
    const over = new AbortController();
    const response = await get(`/${kind}/ses_1`, { signal: over.signal });
    const reader = response.body!.getReader();
    for (let text = ''; !text.includes('rld'); ) text += new TextDecoder().decode((await reader.read()).value);
    await Promise.all([reader.cancel().catch(() => {}), over.abort()]);
    await left;
  });

  test('the chat of the AI SDK reads a turn as a message, which its models can read', async () => {
    const get = await serve((await session()).client);
    const transport = new DefaultChatTransport({
      api: '/ui/ses_1',
      fetch: async (url, init) => {
        const { signal } = init ?? {};
        const response = await get(String(url), signal ? { signal } : {});
        expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
        return response;
      },
    });
    const options = { chatId: 'c', messages: [], messageId: undefined, abortSignal: undefined };
    const stream = await transport.sendMessages({ trigger: 'submit-message', ...options });
    let message: UIMessage | undefined;
    for await (const each of readUIMessageStream({ stream, terminateOnError: true })) message = each;
    expect(message!.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: 'Hello\nwörld 😀', state: 'done' },
    ]);
    expect(await convertToModelMessages([message!])).toMatchObject([
      { role: 'assistant', content: [{ type: 'text', text: 'Hello\nwörld 😀' }] },
    ]);
  });
});

test('nothing is read ahead of a reader that takes nothing, and a silent stream has heartbeats', async () => {
  const { client } = await session(5);
  const beats: (() => void)[] = [];
  const sleep = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      beats.push(resolve);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  const stream = client.sessions.stream('ses_1');
  const response = await toEventStreamResponse(stream, { sleep });
  const reader = response.body!.getReader();
  expect(beats).toHaveLength(0);
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await read()).toBe(': connected\n');
  for (let seq = 1; seq <= 4; seq += 1) expect(await read()).toContain(`id: turn_1:seq_${seq}`);
  for (let n = 0; n < 3; n += 1) {
    const silent = read();
    await expect.poll(() => beats.length).toBe(5 + n);
    beats.at(-1)!();
    expect(await silent).toBe(': here\n');
  }
  await reader.cancel();
});

describe('a webhook in plain Fastify', () => {
  const body = JSON.stringify(envelopeAt(1));
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-service-timestamp': timestamp,
    'x-service-signature': signature,
  };

  async function post(setUp: (app: FastifyInstance) => void) {
    const errors: unknown[] = [];
    const seen: Envelope[] = [];
    const receiver = webhooks.receiver({
      secrets: secret,
      onChunks: (envelope) => void seen.push(envelope),
      onError: (error) => errors.push(error),
    });
    const app = Fastify();
    setUp(app);
    app.post('/hook', async (request, reply) => {
      reply.hijack();
      await receiver.node(request.raw, reply.raw);
    });
    onTestFinished(() => app.close());
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const response = await fetch(`${url}/hook`, { method: 'POST', headers, body });
    return { status: response.status, errors, seen };
  }

  test('is refused because the body was parsed, and the error says what to do', async () => {
    const { status, errors, seen } = await post(() => {});
    expect([status, seen]).toEqual([500, []]);
    expect(String(errors[0])).toMatch(/raw bytes.*Fastify.*addContentTypeParser/);
  });

  test('is received once the body is left to the receiver, as the error says', async () => {
    const { status, errors, seen } = await post((app) => {
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('application/json', (_request, _payload, done) => done(null));
    });
    expect([status, errors]).toEqual([200, []]);
    expect(seen).toEqual([envelopeAt(1)]);
  });
});
