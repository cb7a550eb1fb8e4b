// Child sessions on a whole service, as integrators use them: through the client, streams and webhooks.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Chunk } from '@signalbox/client';
import { expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '../support/receiver.ts';
import { startTestService, watchSecret } from '../support/service.ts';

test('a child has a stream and webhooks of its own, and its parent’s environment with its secrets', async () => {
  const authorized: unknown[] = [];
  const library = createServer((request, response) => {
    authorized.push(request.headers.authorization);
    response.end('a book');
  }).listen(0, '127.0.0.1');
  await once(library, 'listening');
  onTestFinished(() => void library.close());
  const host = `127.0.0.1:${(library.address() as AddressInfo).port}`;
  const receiver = await createReceiver();
  onTestFinished(() => receiver.close());
  const { client } = await startTestService();
  const value = 'what opens the library of staging';
  watchSecret(value);
  await client.environments.secrets.set('staging', 'TOKEN', { value, allowedHosts: [host] });
  await client.webhookSubscriptions.create({ environment: 'staging', url: receiver.url });

  const scripted = (script: object[]) => ({ provider: 'scripted' as const, model: 'test', settings: { script } });
  const child = await client.agents.create({
    name: 'Child',
    model: scripted([{ toolCalls: [{ name: 'look' }] }, { text: '{{lastToolResult}}' }]),
    tools: [
      {
        type: 'http',
        name: 'look',
        description: 'Looks for a book',
        inputSchema: { type: 'object' },
        request: { method: 'GET', url: `http://${host}/`, headers: { authorization: '{{secrets.TOKEN}}' } },
      },
    ],
  });
  const parent = await client.agents.create({
    name: 'Parent',
    model: scripted([{ toolCalls: [{ name: 'helper', input: { input: 'help' } }] }, { text: 'Done' }]),
    tools: [{ type: 'agent', name: 'helper', description: 'Helps', agentId: child.agentId }],
  });
  const { sessionId } = await client.sessions.open({
    agentId: parent.agentId,
    environment: 'staging',
    input: 'go',
    closeOnIdle: true,
  });
  const parents = await streamOf(sessionId);
  const { data } = await client.sessions.list({ parentSessionId: sessionId });
  expect(data).toMatchObject([{ parentSessionId: sessionId, environment: 'staging', status: 'completed' }]);
  const childId = data[0]!.sessionId;
  const children = await streamOf(childId);
  expect(authorized).toEqual([value]);

  for (const chunks of [parents, children]) expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, n) => n + 1));
  expect(textOf(parents)).toBe('Done');
  expect(textOf(children)).toBe('a book');

  const delivered = (id: string) =>
    receiver.received.flatMap(({ envelope }) => (envelope.sessionId === id ? [envelope] : []));
  const hasEnded = (id: string) =>
    delivered(id).some(({ chunks }) => chunks.some((chunk) => 'status' in chunk && chunk.status === 'completed'));
  for (let count = 1; !hasEnded(sessionId) || !hasEnded(childId); count += 1) await receiver.first(count);
  expect(textOf(delivered(childId).flatMap(({ chunks }) => chunks as Chunk[]))).toBe('a book');
  expect(delivered(childId).map(({ agentId }) => agentId)).toContain(child.agentId);
  expect(delivered(sessionId).map(({ agentId }) => agentId)).not.toContain(child.agentId);

  async function streamOf(id: string): Promise<Chunk[]> {
    const all: Chunk[] = [];
    for await (const { chunks } of client.sessions.stream(id)) all.push(...chunks);
    return all;
  }
});

function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => (chunk.type === 'message.chunk' ? chunk.delta : '')).join('');
}
