// Runs each program of this folder as a user would, and checks what it prints.
import { afterEach, beforeAll, expect, test } from 'vitest';
import { respond, startOpenAiServer } from '../packages/server/test/support/openai-server.ts';
import { startTestService, type TestService } from '../packages/server/test/support/service.ts';
import { type Running, runProgram } from './run-program.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
let running: Running | undefined;
afterEach(() => running?.process.kill());

const access = () => ({ SIGNALBOX_URL: service.url, SIGNALBOX_API_KEY: service.adminKey });

test('quickstart prints the text as it streams and ends with the session', async () => {
  running = runProgram('quickstart.ts', [], access());
  expect(await running.ended).toBe(0);
  expect(running.printed).toBe('You said: Hello\n');
});

test.each([
  ['quickstart.ts', {}, /^apiKey is missing: .*\nCreate one: export SIGNALBOX_API_KEY=.*\n$/],
  [
    'quickstart.ts',
    { SIGNALBOX_API_KEY: 'sbk_x', SIGNALBOX_PORT: '1' },
    /^connection_error: .*SIGNALBOX_URL.*\n.*npm start.*\n$/,
  ],
  ['receiver.ts', {}, /^Set SIGNALBOX_SIGNING_SECRET, .*\n$/],
])('%s with the variables %j ends with what to do instead of a stack', async (program, env, message) => {
  running = runProgram(program, [], env);
  expect(await running.ended).toBe(1);
  expect(running.printed).toMatch(message);
});

test('client-tool posts the result that the session waits for', async () => {
  running = runProgram('client-tool.ts', [], access());
  expect(await running.ended).toBe(0);
  expect(running.printed).toBe('Let me check.\nIn stock: 12\n');
});

test('model calls the given server with the key that was stored for it', async () => {
  const server = await startOpenAiServer(
    respond({ text: ['It scatters ', 'blue light.'], usage: { prompt: 12, completion: 5 } }),
  );
  running = runProgram('model.ts', [], { ...access(), MODEL_BASE_URL: server.url, MODEL_API_KEY: 'sk-of-the-example' });
  expect(await running.ended).toBe(0);
  expect(running.printed).toBe('It scatters blue light.\n12 tokens in, 5 out\n');
  expect(server.requests[0]?.headers.authorization).toBe('Bearer sk-of-the-example');
  await server.close();
});

test('approve works through the inbox and approves less than the agent asked for', async () => {
  running = runProgram('approve.ts', [], access());
  expect(await running.ended).toBe(0);
  expect(running.printed).toBe(
    [
      'I will ask for approval.',
      'refund: 90 euros for order 1017?',
      'maria@example.com approved {"order":"1017","euros":45}',
      'Done: 45 euros for order 1017',
      '',
    ].join('\n'),
  );
});

test.each([
  ['y', 'refunded 42 euros'],
  ['n', 'The approver denied this call: Ask for a photo first.'],
])('the program of the tutorial asks, and the answer %s decides whether the call runs', async (reply, result) => {
  running = runProgram('tutorial/refund.ts', [], access());
  await running.until('? (y/n) ');
  running.process.stdin!.write(`${reply}\n`);
  expect(await running.ended).toBe(0);
  expect(running.printed).toContain('I will refund that.\nrefund {"order":"1017","euros":42}? (y/n) ');
  expect(running.printed).toContain(`The result: ${result}`);
});

test('worker runs the turns of its agent, with a refund that needs approval', async () => {
  running = runProgram('worker.ts', [], access());
  expect(await running.ended).toBe(0);
  expect(running.printed).toBe('I will ask for approval. Done: order 1017 was refunded.\n');
});

test.each(['worker-ai-sdk.ts', 'worker-langgraph.ts', 'worker-openai-agents.ts'])(
  '%s runs an agent of the framework, whose tool runs once it is approved',
  async (program) => {
    const server = await startOpenAiServer();
    server.next(
      respond({ text: 'One moment. ', toolCalls: [{ name: 'refund', arguments: { order: '1017' } }] }),
      respond({ text: ['I refunded ', 'it.'] }),
    );
    running = runProgram(program, [], { ...access(), MODEL_BASE_URL: server.url });
    expect(await running.ended).toBe(0);
    expect(running.printed).toBe(
      'One moment. [approved: refund {"order":"1017"}] I refunded it.\n2 steps, 30 tokens\n',
    );
    expect(server.requests[1]?.body.messages.at(-1)?.content).toBe('Order 1017 was refunded.');
    await server.close();
  },
);

test('sub-agent prints the text of the child session while the parent waits for it', async () => {
  running = runProgram('sub-agent.ts', [], access());
  expect(await running.ended).toBe(0);
  expect(running.printed).toBe(
    [
      'I will have it translated.',
      '  { "language": "fr", "text": "Bonjour" }',
      'The card says: {"language":"fr","text":"Bonjour"}',
      'child session: completed, 1 step',
      '',
    ].join('\n'),
  );
});

test('schedule opens a session on time and deletes its schedules', async () => {
  running = runProgram('schedule.ts', [], access());
  expect(await running.ended).toBe(0);
  expect(running.printed).toMatch(
    /^every weekday, next at \S+Z\nopened on time: true\n\n\[running\]\nNothing new in the last hour\.\n\[completed\]\n$/,
  );
  expect((await service.client.schedules.list()).data).toEqual([]);
});

test('receiver prints what the service sends and refuses an unsigned request', async () => {
  const { client } = service;
  await client.environments.create({ name: 'receiving' });
  const url = 'http://127.0.0.1:1/';
  const { signingSecret } = await client.webhookSubscriptions.create({ environment: 'receiving', url });
  running = runProgram('receiver.ts', [], { SIGNALBOX_SIGNING_SECRET: signingSecret!, PORT: '0' });
  await running.until('listening on ');
  const [, address = ''] = /listening on (\S+)\n/.exec(running.printed) ?? [];

  const forged = await fetch(address, { method: 'POST', body: '{}' });
  expect(forged.status).toBe(401);

  await client.webhookSubscriptions.update('receiving', { url: address });
  const agent = await client.agents.create({ name: 'Echo', model: 'scripted/echo' });
  const { sessionId } = await client.sessions.open({
    agentId: agent.agentId,
    environment: 'receiving',
    input: 'Hello',
    closeOnIdle: true,
  });
  await running.until(`${sessionId} start → `);
  const { cursor } = await endOf(sessionId);
  await running.until(`→ ${cursor}: `);
});

async function endOf(sessionId: string) {
  for await (const _ of service.client.sessions.stream(sessionId));
  return await service.client.sessions.get(sessionId);
}
