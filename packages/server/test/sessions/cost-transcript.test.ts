// A transcript of the maximum length is read, sent to a model and given to a worker without blocking the event loop for more than
// 250 ms of its thread's CPU time. A longer one becomes shorter first.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { expectUnblocked } from '../api/fuzz/loop-watch.ts';
import { startTestService, type TestService } from '../support/service.ts';

const PART_BYTES = 1_000_000;
/** As many results as a worker gets before the oldest are left out. */
const PARTS = 4;

const outputs: Record<string, unknown> = {
  'one text': 'a'.repeat(PART_BYTES),
  'empty objects': Array.from({ length: PART_BYTES / 3 }, () => ({})),
  'many fields': Object.fromEntries(
    Array.from({ length: PART_BYTES / 14 }, (_, index) => [Math.imul(index, 2_654_435_761).toString(36), 'v']),
  ),
};

let service: TestService;
let model: { url: string; received: number[] };

beforeAll(async () => {
  service = await startTestService();
  const received: number[] = [];
  // It responds with nothing and discards the request, to use as little of the thread's time as possible.
  const server = createServer(async (request, response) => {
    let bytes = 0;
    for await (const part of request) bytes += (part as Buffer).length;
    received.push(bytes);
    response.writeHead(400, { 'Content-Type': 'application/json' }).end('{"error":{"message":"no"}}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  model = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, received };
  return () => void server.close();
});
afterAll(() => service.stop());

/** Creates a session whose transcript has these results of earlier turns. */
async function sessionWith(agentId: string, results: readonly unknown[]): Promise<string> {
  const { sessionId: id } = await service.client.sessions.open({ agentId, environment: 'production' });
  const [organizationId, sessionId] = [uuidOf('org', service.organizationId), uuidOf('ses', id)];
  const entries = results.flatMap((output) => {
    const toolCallId = formatId('call', newUuid());
    return [
      ['user', { type: 'text', text: 'go' }],
      ['assistant', { type: 'tool_call', toolCallId, tool: 't', input: {} }],
      ['tool', { type: 'tool_result', toolCallId, output }],
    ] as const;
  });
  for (const [position, [role, part]] of entries.entries())
    await service.db.execute(sql`
      insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
      values (${organizationId}, ${sessionId}, 1, ${position}, ${newUuid()}, ${role}, ${JSON.stringify([part])}, now())`);
  await service.db.execute(sql`
    update sessions set turn = 1 where organization_id = ${organizationId} and session_id = ${sessionId}`);
  return id;
}

/** The size of the response in bytes, which are counted and dropped. */
async function claimed(queue: string): Promise<number> {
  const body = JSON.stringify({ queue });
  const headers = { Authorization: `Bearer ${service.adminKey}`, 'Content-Type': 'application/json' };
  const claiming = request(`${service.url}/api/v1/worker_turns/claim`, { method: 'POST', headers });
  claiming.end(body);
  const [response] = await once(claiming, 'response');
  let bytes = 0;
  for await (const part of response) bytes += part.length;
  return bytes;
}

/** Each test has a queue of its own, because a turn that was claimed and not completed is offered again. */
const agentOfWorker = (queue: string) =>
  service.client.agents.create({ name: 'Worker', model: { provider: 'worker', queue } });
const agentOfModel = () =>
  service.client.agents.create({
    name: 'Model',
    model: { provider: 'openai-compatible', model: 'x', baseUrl: model.url },
  });
const errorOf = (sessionId: string) =>
  expect.poll(async () => (await service.client.sessions.get(sessionId)).error, { timeout: 60_000, interval: 50 });

test.each(Object.entries(outputs))(
  'a worker claims a turn with a long transcript without blocking the event loop: %s',
  { timeout: 120_000 },
  async (name, output) => {
    let tries = 0;
    await expectUnblocked(async () => {
      const queue = `${name.replaceAll(' ', '-')}-${++tries}`;
      const { agentId } = await agentOfWorker(queue);
      const sessionId = await sessionWith(agentId, Array(PARTS).fill(output));
      await service.client.sessions.sendMessage(sessionId, { content: 'go' });
      expect(await claimed(queue)).toBeGreaterThan(PARTS * PART_BYTES * 0.9);
    });
  },
);

test.each(Object.entries(outputs))(
  'a model gets a long transcript without blocking the event loop: %s',
  { timeout: 120_000 },
  async (_, output) => {
    const { agentId } = await agentOfModel();
    await expectUnblocked(async () => {
      const sessionId = await sessionWith(agentId, Array(PARTS).fill(output));
      await service.client.sessions.sendMessage(sessionId, { content: 'go' });
      await errorOf(sessionId).not.toBeNull();
      // A summary is requested, of the beginnings and ends of the results.
      expect(model.received.at(-1)).toBeGreaterThan(100_000);
      expect(model.received.at(-1)).toBeLessThan(PART_BYTES);
    });
  },
);

test('a turn with a longer transcript begins with its oldest messages left out', { timeout: 120_000 }, async () => {
  const { agentId } = await agentOfWorker('longer');
  const sessionId = await sessionWith(agentId, Array(PARTS + 1).fill(outputs['one text']));
  await service.client.sessions.sendMessage(sessionId, { content: 'go' });
  expect(await claimed('longer')).toBeLessThan(PARTS * PART_BYTES);
});
