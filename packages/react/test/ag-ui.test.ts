// Sessions as agents of `@ag-ui/client`, over HTTP. Its `runAgent` verifies the events of every run.
import type { AgentSubscriber, Message } from '@ag-ui/client';
import { expect, test } from 'vitest';
import { SignalboxAgent, type SignalboxAgentConfig } from '../src/ag-ui/index.ts';
import { startWorld } from './support/world.ts';

const world = startWorld();

function agentOf(config: Partial<SignalboxAgentConfig> = {}) {
  const { client, open } = world;
  const events: string[] = [];
  const agent = new SignalboxAgent({ client, open, ...config });
  agent.subscribe({ onEvent: ({ event }) => void events.push(event.type) } satisfies AgentSubscriber);
  return { agent, events };
}

let messages = 0;
const user = (content: string): Message => {
  messages += 1;
  return { id: `user_${messages}`, role: 'user', content };
};

const shown = (list: readonly Message[]) =>
  list.map((message) => {
    const calls =
      message.role === 'assistant' ? (message.toolCalls ?? []).map((call) => `[${call.function.name}]`) : [];
    return [message.role, [message.content ?? '', ...calls].join('')].join(': ');
  });

const stateOf = ({ agent }: { agent: SignalboxAgent }) =>
  agent.state as { signalbox: { status: string; turn: number } };

test('a run opens a session, and the next one continues it', async () => {
  const opened: string[] = [];
  const { agent, events } = agentOf({ onSession: ({ sessionId }) => opened.push(sessionId) });
  world.next({ text: ['Hel', 'lo.'] }, { text: 'Fine.' });
  agent.addMessage(user('Hi'));
  expect((await agent.runAgent()).result).toEqual({ stopReason: 'endTurn' });
  expect(events.filter((type) => !type.startsWith('STEP_'))).toEqual([
    'RUN_STARTED',
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_CONTENT',
    ...events.filter((type) => type === 'TEXT_MESSAGE_CONTENT').slice(1),
    'TEXT_MESSAGE_END',
    'STATE_SNAPSHOT',
    'RUN_FINISHED',
  ]);
  agent.addMessage(user('How are you?'));
  await agent.runAgent();
  expect(shown(agent.messages)).toEqual(['user: Hi', 'assistant: Hello.', 'user: How are you?', 'assistant: Fine.']);
  expect(opened).toEqual([agent.sessionId]);
  expect(stateOf({ agent }).signalbox).toMatchObject({ status: 'idle', turn: 2 });
});

test('an approval interrupts the run, and the answer of the next run decides it', async () => {
  const { agent } = agentOf();
  world.next({ text: 'One moment.', toolCalls: [{ name: 'refund', arguments: { cents: 9900 } }] }, { text: 'Done.' });
  agent.addMessage(user('Refund'));
  await agent.runAgent();
  const [interrupt] = agent.pendingInterrupts;
  expect(interrupt).toMatchObject({ reason: 'tool_call', metadata: { tool: 'refund', input: { cents: 9900 } } });
  const payload = { approved: true, input: { cents: 4900 } };
  await agent.runAgent({ resume: [{ interruptId: interrupt!.id, status: 'resolved', payload }] });
  expect(agent.pendingInterrupts).toEqual([]);
  expect(world.refunds).toEqual([{ cents: 4900 }]);
  expect(shown(agent.messages).slice(1)).toEqual([
    'assistant: One moment.[refund]',
    'tool: {"ok":true}',
    'assistant: Done.',
  ]);
  const call = agent.messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))[0];
  expect(call!.function.arguments).toBe('{"cents":4900}');
});

test.each([
  ['denied', { status: 'resolved', payload: { approved: false, reason: 'Too late.' } }, 'Too late.'],
  ['dismissed', { status: 'cancelled' }, 'denied'],
  ['answered with anything else', { status: 'resolved', payload: 'yes' }, 'denied'],
] as const)('an approval that is %s does not run', async (_, answer, told) => {
  const { agent } = agentOf();
  world.next({ toolCalls: [{ name: 'refund', arguments: { cents: 1 } }] }, { text: 'I see.' });
  agent.addMessage(user('Refund'));
  await agent.runAgent();
  const interruptId = agent.pendingInterrupts[0]!.id;
  await agent.runAgent({ resume: [{ interruptId, ...answer }] });
  expect(world.refunds).toEqual([]);
  expect(shown(agent.messages).at(-1)).toBe('assistant: I see.');
  expect(String(world.requests.at(-1)!.messages.at(-1)!.content)).toContain(told);
});

test.each(['continues', 'has ended'])('the first of two decisions counts, if the turn %s meanwhile', async (turn) => {
  const { agent } = agentOf();
  world.next({ toolCalls: [{ name: 'refund', arguments: { cents: 2 } }] });
  const finish = world.nextInTwo('I ', { text: 'see.' });
  agent.addMessage(user('Refund'));
  await agent.runAgent();
  const interruptId = agent.pendingInterrupts[0]!.id;
  await world.client.approvals.deny(interruptId);
  if (turn === 'has ended') await ended(agent, finish);
  const run = agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] });
  finish();
  await run;
  expect(world.refunds).toEqual([]);
  expect(shown(agent.messages).at(-1)).toBe('assistant: I see.');
});

test('the first of two results of a client tool counts, if the turn has ended meanwhile', async () => {
  const { agent } = agentOf();
  world.next({ toolCalls: [{ name: 'where', arguments: {} }] });
  const finish = world.nextInTwo('In ', { text: 'Cork.' });
  agent.addMessage(user('Where am I?'));
  await agent.runAgent();
  const [toolCallId] = (await world.client.sessions.get(agent.sessionId!)).waitingFor!.toolCallIds;
  await world.client.sessions.sendToolResult(agent.sessionId!, { toolCallId: toolCallId!, output: 'Cork' });
  await ended(agent, finish);
  agent.addMessage({ id: 'late', role: 'tool', toolCallId: toolCallId!, content: 'Dublin' });
  await agent.runAgent();
  expect(shown(agent.messages).at(-1)).toBe('assistant: In Cork.');
});

/** Finishes the response of the model, and waits for the end of the turn. */
async function ended({ sessionId }: SignalboxAgent, finish: () => void): Promise<void> {
  finish();
  await expect.poll(async () => (await world.client.sessions.get(sessionId!)).status).toBe('idle');
}

test('the client runs the calls of client tools, and the next run sends their results', async () => {
  const { agent } = agentOf();
  const pending: string[] = [];
  agent.subscribe({
    onRunFinishedEvent: (params) => {
      if (params.outcome === 'success') pending.push(...params.pendingToolCallIds);
    },
  });
  world.next({ toolCalls: [{ name: 'where', arguments: {} }] }, { text: 'In Dublin.' });
  agent.addMessage(user('Where am I?'));
  await agent.runAgent();
  expect(pending).toHaveLength(1);
  agent.addMessage({ id: 'result', role: 'tool', toolCallId: pending[0]!, content: '{"city":"Dublin"}' });
  await agent.runAgent();
  expect(shown(agent.messages)).toEqual([
    'user: Where am I?',
    'assistant: [where]',
    'tool: {"city":"Dublin"}',
    'assistant: In Dublin.',
  ]);
  expect(JSON.parse(String(world.requests.at(-1)!.messages.at(-1)!.content))).toEqual({ city: 'Dublin' });
});

test('abort interrupts the turn, and the run ends as cancelled', async () => {
  const { agent } = agentOf();
  world.nextInTwo('Endless ', { text: 'text' });
  const outcomes: string[] = [];
  agent.subscribe({ onRunFinishedEvent: ({ outcome }) => void outcomes.push(outcome) });
  agent.addMessage(user('Talk'));
  const run = agent.runAgent();
  await expect.poll(() => shown(agent.messages).at(-1)).toBe('assistant: Endless ');
  agent.abortRun();
  await run;
  expect(outcomes).toEqual(['cancelled']);
  expect(await world.client.sessions.get(agent.sessionId!)).toMatchObject({
    status: 'idle',
    stopReason: 'interrupted',
  });
});

test('abort before the session exists interrupts its first turn', async () => {
  const { agent } = agentOf();
  world.nextInTwo('Endless ', { text: 'text' });
  agent.addMessage(user('Talk'));
  const run = agent.runAgent();
  agent.abortRun();
  await run;
  expect(await world.client.sessions.get(agent.sessionId!)).toMatchObject({ stopReason: 'interrupted' });
});

test('connect shows the transcript and the turn that is running, once', async () => {
  const first = agentOf().agent;
  world.next({ text: 'One.' });
  first.addMessage(user('1'));
  await first.runAgent();
  const finish = world.nextInTwo('Tw', { text: 'o.' });
  first.addMessage(user('2'));
  const run = first.runAgent();
  await expect.poll(() => shown(first.messages).at(-1)).toBe('assistant: Tw');

  const { agent, events } = agentOf({ sessionId: first.sessionId! });
  agent.state = { own: true };
  const connected = agent.connectAgent();
  await expect.poll(() => shown(agent.messages)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Tw']);
  finish();
  await Promise.all([run, connected]);
  expect(shown(agent.messages)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Two.']);
  expect(shown(first.messages)).toEqual(shown(agent.messages));
  expect(events.slice(0, 3)).toEqual(['RUN_STARTED', 'STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT']);
  expect(agent.state).toMatchObject({ own: true, signalbox: { status: 'idle', turn: 2 } });

  // An idle session has only the transcript.
  const idle = agentOf({ threadId: first.sessionId! });
  await idle.agent.connectAgent();
  expect(shown(idle.agent.messages)).toEqual(shown(agent.messages));
});

test('connect to a session that waits for an approval has the interrupt, which a run then answers', async () => {
  const first = agentOf().agent;
  world.next({ text: 'One moment.', toolCalls: [{ name: 'refund', arguments: { cents: 6 } }] }, { text: 'Done.' });
  first.addMessage(user('Refund'));
  await first.runAgent();
  const { agent } = agentOf({ sessionId: first.sessionId! });
  await agent.connectAgent();
  const interruptId = agent.pendingInterrupts[0]!.id;
  await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] });
  expect(world.refunds).toEqual([{ cents: 6 }]);
  expect(shown(agent.messages)).toEqual([
    'user: Refund',
    'assistant: One moment.[refund]',
    'tool: {"ok":true}',
    'assistant: Done.',
  ]);
});

test('running a message again continues in a fork', async () => {
  const opened: string[] = [];
  const { agent } = agentOf({ onSession: ({ sessionId }) => opened.push(sessionId) });
  world.next({ text: 'One.' }, { text: 'Two.' }, { text: 'Zwei.' });
  agent.addMessage(user('1'));
  await agent.runAgent();
  agent.addMessage(user('2'));
  await agent.runAgent();
  agent.setMessages(agent.messages.slice(0, 3));
  await agent.runAgent();
  expect(shown(agent.messages)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Zwei.']);
  expect(opened).toHaveLength(2);
  expect(world.requests.at(-1)!.messages.map(({ content }) => content)).toEqual(['1', 'One.', '2']);
});

test('a turn that fails is a failed run, and the thread continues', async () => {
  const { agent, events } = agentOf();
  world.refuseNext();
  agent.addMessage(user('1'));
  await agent.runAgent();
  expect(events.at(-1)).toBe('RUN_ERROR');
  world.next({ text: 'Fine.' });
  agent.addMessage(user('2'));
  await agent.runAgent();
  expect(shown(agent.messages).at(-1)).toBe('assistant: Fine.');
});

test('a file of the user reaches the model', async () => {
  const { agent } = agentOf();
  world.next({ text: 'A text.' });
  const source = {
    type: 'data',
    value: Buffer.from('Hello, file').toString('base64'),
    mimeType: 'text/plain',
  } as const;
  agent.addMessage({
    id: 'with-file',
    role: 'user',
    content: [
      { type: 'text', text: 'What\0 is it?' },
      { type: 'document', source },
      { type: 'document', source: { type: 'url', value: 'data:text/plain,Hello%2C%20url' } },
    ],
  });
  await agent.runAgent();
  const sent = JSON.stringify(world.requests.at(-1)!.messages);
  for (const part of ['What is it?', 'Hello, file', 'Hello, url']) expect(sent).toContain(part);
  const { agent: other } = agentOf({ sessionId: agent.sessionId! });
  await other.connectAgent();
  expect(other.messages[0]).toMatchObject({
    content: [
      { type: 'text' },
      { type: 'document', source: { type: 'file', provider: 'signalbox' } },
      { type: 'document', source: { type: 'file', provider: 'signalbox' } },
    ],
  });
});

test('a clone is the same thread, and detaching stops nothing', async () => {
  const { agent } = agentOf();
  const finish = world.nextInTwo('On ', { text: 'and on.' });
  agent.addMessage(user('Talk'));
  const run = agent.runAgent();
  await expect.poll(() => shown(agent.messages).at(-1)).toBe('assistant: On ');
  const clone = agent.clone();
  await agent.detachActiveRun();
  await run.catch(() => undefined);
  finish();
  await clone.connectAgent();
  expect(clone.sessionId).toBe(agent.sessionId);
  expect(shown(clone.messages)).toEqual(['user: Talk', 'assistant: On and on.']);
});
