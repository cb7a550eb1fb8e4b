// `signalbox sessions chat`, on a terminal of its own and on a pipe.
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { startTestService, type TestService } from '../../server/test/support/service.ts';
import { runCli } from './support/cli.ts';
import { type OnTerminal, onTerminal } from './support/terminal.ts';

// A process takes seconds to start on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

let service: TestService;
const running: OnTerminal[] = [];
beforeAll(async () => {
  service = await startTestService();
});
afterEach(async () => {
  for (const one of running.splice(0)) await one.kill();
});

const env = () => ({ SIGNALBOX_API_KEY: service.adminKey, SIGNALBOX_URL: service.url, NO_COLOR: '1' });

function chat(id: string, ...options: string[]): OnTerminal {
  const one = onTerminal(['sessions', 'chat', id, ...options], env());
  running.push(one);
  return one;
}

const inputSchema = { type: 'object', properties: { cents: { type: 'integer', maximum: 500 } } };
const refund = { type: 'client' as const, name: 'refund', description: 'Refunds.', effectful: true, inputSchema };

async function agent(script: object[]): Promise<string> {
  const model = { provider: 'scripted' as const, model: 'x', settings: { script: script as never } };
  return (await service.client.agents.create({ name: 'Desk', model, tools: [refund] })).agentId;
}

const newest = async (agentId: string) => (await service.client.sessions.list({ agentId })).data[0]!;

test('a conversation shows responses, asks for approvals and tool results inline, and Ctrl-D leaves it open', async () => {
  const agentId = await agent([
    { text: 'You said {{input}}.' },
    { text: 'I ask.', toolCalls: [{ name: 'refund', input: { cents: 17 } }] },
    { text: 'All done.' },
  ]);
  const terminal = chat(agentId, '--environment', 'staging');
  await terminal.shows('> ');
  terminal.type('hello\r');
  await terminal.shows(/You said hello\.\r\n\S*> /);
  terminal.type('please refund\r');
  await terminal.shows(/\? {2}refund \{"cents":17\}\r\n\S* {3}Run refund\? \[y\]es, \[n\]o, \[e\]dit/);
  terminal.type('what\r');
  terminal.type('e\r');
  await terminal.shows('Input, as JSON: ');
  // The tool refuses it, so the question comes again.
  terminal.type('{"cents":900}\r');
  await terminal.shows(/400 invalid_request.*\? {2}refund \{"cents":17\}/s);
  terminal.type('e\r');
  await terminal.shows(/400 invalid_request.*Input, as JSON: /s);
  terminal.type('{"cents":400}\r');
  await terminal.shows('Result of refund, as JSON');
  terminal.type('{"ok":true}\r');
  await terminal.shows(/All done\.\r\n\S*> /);
  terminal.type('\u0004');
  expect(await terminal.ended).toBe(0);
  const { sessionId, status } = await newest(agentId);
  expect(terminal.screen()).toContain(`Continue with: signalbox sessions chat ${sessionId}`);
  expect(status).toBe('idle');
  const decided = (await service.client.approvals.list({ sessionId })).data[0]!;
  expect(decided).toMatchObject({ status: 'approved', editedInput: { cents: 400 } });
});

test('Ctrl-C stops the turn and the conversation continues; a second one leaves', async () => {
  const slow = { text: 'word '.repeat(2_000), tokenDelayMs: 50 };
  const agentId = await agent([slow, { text: 'Back again.' }, slow]);
  const terminal = chat(agentId, '--environment', 'staging');
  await terminal.shows('> ');
  terminal.type('talk\r');
  await terminal.shows('word word');
  terminal.type('\u0003');
  await terminal.shows(/Stopping the turn.*interrupted.*\r\n\S*> /s);
  terminal.type('and now?\r');
  await terminal.shows(/Back again\.\r\n\S*> /);
  terminal.type('once more\r');
  await terminal.shows(/Back again.*word word/s);
  terminal.type('\u0003\u0003');
  expect(await terminal.ended).toBe(0);
  expect(terminal.screen()).toContain('Continue with: signalbox sessions chat ses_');
});

test('an open session is continued where it waits, and its end ends the conversation', async () => {
  const agentId = await agent([
    { text: 'I ask.', toolCalls: [{ name: 'refund', input: { cents: 1 } }] },
    { text: 'As you wish.' },
  ]);
  const open = { agentId, environment: 'staging', input: 'go', closeOnIdle: true };
  const { sessionId } = await service.client.sessions.open(open);
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('waiting');
  const terminal = chat(sessionId);
  await terminal.shows('Run refund?');
  terminal.type('n\r');
  await terminal.shows('Reason, for the agent');
  terminal.type('too much\r');
  await terminal.shows(/As you wish\..*The session is completed/s);
  expect(await terminal.ended).toBe(0);
  expect((await service.client.approvals.list({ sessionId })).data[0]).toMatchObject({
    status: 'denied',
    reason: 'too much',
  });
});

test('the end of a turn that someone else began is not the end of the next', async () => {
  const words = Array.from({ length: 8 }, (_, word) => `word${word} `).join('');
  const agentId = await agent([
    { text: 'Mine: {{input}}' },
    { text: `${words}{{input}}` },
    { text: 'Last: {{input}}' },
  ]);
  const terminal = chat(agentId, '--environment', 'staging');
  await terminal.shows('> ');
  terminal.type('one\r');
  await terminal.shows(/Mine: one.*> /s);
  const { sessionId } = await newest(agentId);
  await service.client.sessions.sendMessage(sessionId, { content: 'theirs' });
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');
  terminal.type('three\r');
  await terminal.shows(/word7 theirs.*Last: three.*> /s);
  terminal.type('\x04');
  expect(await terminal.ended).toBe(0);
});

test('piped messages are sent one after another, and only responses are printed', async () => {
  const agentId = await agent([{ text: 'First: {{input}}' }, { text: 'Second: {{input}}' }]);
  const argv = ['sessions', 'chat', agentId, '--environment', 'staging'];
  const { code, stdout } = await runCli(argv, { env: env(), stdin: 'one\n\ntwo\n' });
  expect([code, stdout]).toEqual([0, 'First: one\nSecond: two\n']);
  const wrong = await runCli(['sessions', 'chat', agentId], { env: env() });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('needs --environment')]);
  const named = await runCli(['sessions', 'chat', 'Desk', '--environment', 'staging'], { env: env() });
  expect([named.code, named.stderr]).toEqual([2, expect.stringContaining('signalbox agents list')]);
});
