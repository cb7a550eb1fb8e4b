// The transport under the chat of `@ai-sdk/react`, which is what `useChat` shows, over HTTP.
import { Chat } from '@ai-sdk/react';
import { type ChatInit, isToolUIPart, type UIMessage } from 'ai';
import { expect, test, vi } from 'vitest';
import {
  hasAnswers,
  type SignalboxMetadata,
  SignalboxTransport,
  type SignalboxTransportOptions,
} from '../src/ai-sdk/index.ts';
import { startWorld } from './support/world.ts';

type Message = UIMessage<SignalboxMetadata>;

const world = startWorld();

/** A chat on a page of its own, as after a reload. */
function page(options: Partial<SignalboxTransportOptions> = {}, init: ChatInit<Message> = {}) {
  const { client, open } = world;
  const sessions: string[] = [];
  const transport = new SignalboxTransport<Message>({
    client,
    open,
    onSession: ({ sessionId }) => sessions.push(sessionId),
    ...options,
  });
  const chat = new Chat<Message>({ transport, sendAutomaticallyWhen: hasAnswers, ...init });
  return { chat, transport, sessions };
}

const shown = ({ messages }: Chat<Message>) =>
  messages.map(({ role, parts }) => {
    const texts = parts.flatMap((part) => {
      if (part.type === 'text' || part.type === 'reasoning') return part.text;
      return isToolUIPart(part) ? `[${part.type.slice(5)} ${part.state}]` : part.type === 'file' ? `(${part.url})` : [];
    });
    return `${role}: ${texts.join('|')}`;
  });

const approvalOf = (chat: Chat<Message>) => {
  const parts = chat.messages.flatMap((message) => message.parts).filter(isToolUIPart);
  return parts.find(({ state }) => state === 'approval-requested')?.approval?.id;
};

const statusOf = async (sessionId: string) => (await world.client.sessions.get(sessionId)).status;

test('a chat opens a session with its first message and continues it with the next', async () => {
  const { chat, sessions } = page();
  world.next({ text: ['Hel', 'lo.'] }, { text: 'Fine.' });
  await chat.sendMessage({ text: 'Hi' });
  expect(shown(chat)).toEqual(['user: Hi', 'assistant: Hello.']);
  await chat.sendMessage({ text: 'How are you?' });
  expect(shown(chat).slice(2)).toEqual(['user: How are you?', 'assistant: Fine.']);
  expect(chat.status).toBe('ready');
  expect(sessions).toHaveLength(1);
  expect(chat.messages.map(({ id }) => id)).toEqual([expect.any(String), 'turn_1', expect.any(String), 'turn_2']);
  expect(chat.messages[1]!.metadata).toMatchObject({ sessionId: sessions[0], turn: 1, stopReason: 'endTurn' });
});

test('two messages that are sent at once to a new chat are in one session', async () => {
  const { chat, sessions } = page();
  world.next({ text: 'One.' }, { text: 'Two.' });
  await Promise.all([chat.sendMessage({ text: 'Hi' }), chat.sendMessage({ text: 'Hi' })]);
  expect(sessions).toHaveLength(1);
  const { data } = await world.client.sessions.messages(sessions[0]!);
  expect(data.filter(({ role }) => role === 'user')).toHaveLength(2);
});

test('a chat whose messages were loaded continues their session, whatever its id', async () => {
  const first = page();
  world.next({ text: 'One.' }, { text: 'Two.' });
  await first.chat.sendMessage({ text: '1' });
  const [sessionId] = first.sessions;
  const { chat, transport, sessions } = page({ sessionId: () => sessionId });
  chat.messages = await transport.load(chat.id);
  expect(shown(chat)).toEqual(['user: 1', 'assistant: One.']);
  await chat.sendMessage({ text: '2' });
  expect(shown(chat)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Two.']);
  expect(sessions).toEqual([]);
  // Only the messages say which session it is.
  const other = page({}, { messages: chat.messages });
  world.next({ text: 'Three.' });
  await other.chat.sendMessage({ text: '3' });
  expect(other.chat.messages.at(-1)!.metadata).toMatchObject({ sessionId, turn: 3 });
});

test('a function of the page can open the session', async () => {
  const { client, open } = world;
  const { chat, sessions } = page({ open: async () => (await client.sessions.open(open)).sessionId });
  world.next({ text: 'Yes.' });
  await chat.sendMessage({ text: 'There?' });
  expect(shown(chat)).toEqual(['user: There?', 'assistant: Yes.']);
  expect(sessions).toHaveLength(1);
});

test('an approved call runs once, and the answer continues the same message', async () => {
  const { chat } = page();
  world.next({ text: 'One moment.', toolCalls: [{ name: 'refund', arguments: { cents: 4900 } }] }, { text: 'Done.' });
  await chat.sendMessage({ text: 'Refund' });
  expect(chat.status).toBe('ready');
  expect(shown(chat)[1]).toBe('assistant: One moment.|[refund approval-requested]');
  const before = world.refunds.length;
  await chat.addToolApprovalResponse({ id: approvalOf(chat)!, approved: true });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: One moment.|[refund output-available]|Done.');
  await expect.poll(() => chat.status).toBe('ready');
  expect(chat.messages).toHaveLength(2);
  expect(world.refunds.slice(before)).toEqual([{ cents: 4900 }]);
});

test('a denial and its reason reach the model, and the call is shown as denied', async () => {
  const { chat } = page();
  world.next({ toolCalls: [{ name: 'refund', arguments: { cents: 1 } }] }, { text: 'I see.' });
  await chat.sendMessage({ text: 'Refund' });
  const before = world.refunds.length;
  await chat.addToolApprovalResponse({ id: approvalOf(chat)!, approved: false, reason: 'Too late.' });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: [refund output-denied]|I see.');
  expect(String(world.requests.at(-1)!.messages.at(-1)!.content)).toContain('Too late.');
  expect(world.refunds.length).toBe(before);
});

test('of two deciders the first counts, also in the page of the other', async () => {
  const { chat } = page();
  world.next({ toolCalls: [{ name: 'refund', arguments: { cents: 2 } }] }, { text: 'I see.' });
  await chat.sendMessage({ text: 'Refund' });
  const id = approvalOf(chat)!;
  await world.client.approvals.deny(id, { reason: 'No.' });
  await chat.addToolApprovalResponse({ id, approved: true });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: [refund output-denied]|I see.');
  expect(chat.error).toBeUndefined();
});

test('a page that does not decide goes through the approvals of others', async () => {
  const { chat } = page({ approvals: 'others' });
  world.next({ toolCalls: [{ name: 'refund', arguments: { cents: 3 } }] }, { text: 'Done.' });
  const sent = chat.sendMessage({ text: 'Refund' });
  await expect.poll(() => approvalOf(chat)).toBeDefined();
  expect(chat.status).toBe('streaming');
  await world.client.approvals.approve(approvalOf(chat)!);
  await sent;
  expect(shown(chat)[1]).toBe('assistant: [refund output-available]|Done.');
});

test('the page runs client tools, and only these', async () => {
  const asked: string[] = [];
  const { chat } = page({}, { onToolCall: ({ toolCall }) => void asked.push(toolCall.toolName) });
  const toolCalls = [
    { name: 'where', arguments: {} },
    { name: 'refund', arguments: { cents: 5 } },
  ];
  world.next({ toolCalls }, { text: 'Done.' });
  await chat.sendMessage({ text: 'Where?' });
  expect(asked).toEqual(['where']);
  expect(shown(chat)[1]).toBe('assistant: [refund approval-requested]|[where input-available]');
  const where = chat.messages[1]!.parts.find((part) => part.type === 'tool-where');
  await chat.addToolOutput({
    tool: 'where',
    toolCallId: (where as { toolCallId: string }).toolCallId,
    output: 'Dublin',
  });
  // Nothing is sent until the approval is answered too.
  expect(chat.status).toBe('ready');
  await chat.addToolApprovalResponse({ id: approvalOf(chat)!, approved: true });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: [refund output-available]|[where output-available]|Done.');
  expect(JSON.stringify(world.requests.at(-1)!.messages)).toContain('Dublin');
});

test('an error of a client tool reaches the model', async () => {
  const { chat } = page();
  world.next({ toolCalls: [{ name: 'where', arguments: {} }] }, { text: 'A pity.' });
  await chat.sendMessage({ text: 'Where?' });
  const { toolCallId } = chat.messages[1]!.parts.find(isToolUIPart)!;
  await chat.addToolOutput({ state: 'output-error', tool: 'where', toolCallId, errorText: 'No permission.' });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: [where output-error]|A pity.');
  expect(String(world.requests.at(-1)!.messages.at(-1)!.content)).toContain('No permission.');
});

test('a page that is loaded in the middle of a response shows all of it, once', async () => {
  const first = page();
  const finish = world.nextInTwo('It is ', { text: 'blue.' });
  const sent = first.chat.sendMessage({ text: 'The sky?' });
  await expect.poll(() => shown(first.chat)[1]).toBe('assistant: It is ');

  const { chat, transport } = page({ sessionId: () => first.sessions[0] });
  chat.messages = await transport.load(chat.id);
  const resumed = chat.resumeStream();
  await expect.poll(() => shown(chat)).toEqual(['user: The sky?', 'assistant: It is ']);
  finish();
  await Promise.all([sent, resumed]);
  expect(shown(chat)).toEqual(['user: The sky?', 'assistant: It is blue.']);
  expect(shown(first.chat)).toEqual(shown(chat));
});

test('a page that is loaded while an approval is pending shows it and can decide it', async () => {
  const first = page();
  world.next({ text: 'One moment.', toolCalls: [{ name: 'refund', arguments: { cents: 6 } }] }, { text: 'Done.' });
  await first.chat.sendMessage({ text: 'Refund' });
  const { chat, transport } = page({ sessionId: () => first.sessions[0] });
  chat.messages = await transport.load(chat.id);
  await chat.resumeStream();
  expect(shown(chat)[1]).toBe('assistant: One moment.|[refund approval-requested]');
  await chat.addToolApprovalResponse({ id: approvalOf(chat)!, approved: true });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: One moment.|[refund output-available]|Done.');
  expect(chat.messages).toHaveLength(2);
});

test('what ended between loading and resuming is shown, and a session that is idle has nothing to resume', async () => {
  const first = page();
  const finish = world.nextInTwo('Half ', { text: 'whole.' });
  const sent = first.chat.sendMessage({ text: 'Go' });
  await expect.poll(() => shown(first.chat)[1]).toBe('assistant: Half ');
  const { chat, transport } = page({ sessionId: () => first.sessions[0] });
  chat.messages = await transport.load(chat.id);
  finish();
  await sent;
  await expect.poll(() => statusOf(first.sessions[0]!)).toBe('idle');
  await chat.resumeStream();
  expect(shown(chat)).toEqual(['user: Go', 'assistant: Half whole.']);
  expect(await transport.reconnectToStream({ chatId: chat.id })).toBeNull();
});

test('stop interrupts the turn, and the next message gets its own', async () => {
  const { chat, sessions } = page();
  world.nextInTwo('Endless ', { text: 'text' });
  const sent = chat.sendMessage({ text: 'Talk' });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: Endless ');
  await chat.stop();
  await sent;
  await expect.poll(() => statusOf(sessions[0]!)).toBe('idle');
  expect(await world.client.sessions.get(sessions[0]!)).toMatchObject({ stopReason: 'interrupted' });
  world.next({ text: 'Short.' });
  await chat.sendMessage({ text: 'Short, please' });
  expect(shown(chat)).toEqual(['user: Talk', 'assistant: Endless ', 'user: Short, please', 'assistant: Short.']);
});

test('a resume that replaces another one stops nothing', async () => {
  const { chat, sessions } = page();
  const finish = world.nextInTwo('On ', { text: 'and on.' });
  const sent = chat.sendMessage({ text: 'Talk' });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: On ');
  const interrupt = vi.spyOn(world.client.sessions, 'interrupt');
  const other = page({ sessionId: () => sessions[0] });
  other.chat.messages = await other.transport.load(other.chat.id);
  const resumes = [other.chat.resumeStream()];
  await expect.poll(() => other.chat.status).toBe('streaming');
  resumes.push(other.chat.resumeStream());
  await resumes[0];
  finish();
  await Promise.all([sent, ...resumes]);
  expect(shown(other.chat)).toEqual(['user: Talk', 'assistant: On and on.']);
  expect(interrupt).not.toHaveBeenCalled();
  expect(await world.client.sessions.get(sessions[0]!)).toMatchObject({ stopReason: 'endTurn' });
});

test('a resume that is stopped and repeated at once, as in the strict mode of React, stops nothing', async () => {
  const first = page();
  const finish = world.nextInTwo('On ', { text: 'and on.' });
  const sent = first.chat.sendMessage({ text: 'Talk' });
  await expect.poll(() => shown(first.chat)[1]).toBe('assistant: On ');
  const { chat, transport } = page({ sessionId: () => first.sessions[0] });
  chat.messages = await transport.load(chat.id);
  const resumes = [chat.resumeStream(), chat.stop(), chat.resumeStream()];
  await expect.poll(() => chat.status).toBe('streaming');
  finish();
  await Promise.all([sent, ...resumes]);
  expect(shown(chat)).toEqual(['user: Talk', 'assistant: On and on.']);
  expect(await world.client.sessions.get(first.sessions[0]!)).toMatchObject({ stopReason: 'endTurn' });
});

test('a page that detaches lets the turn continue', async () => {
  const { chat, sessions } = page({ onStop: 'detach' });
  const finish = world.nextInTwo('On ', { text: 'and on.' });
  const sent = chat.sendMessage({ text: 'Talk' });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: On ');
  await chat.stop();
  await sent;
  finish();
  await expect.poll(() => statusOf(sessions[0]!)).toBe('idle');
  expect(await world.client.sessions.get(sessions[0]!)).toMatchObject({ stopReason: 'endTurn' });
});

test('regenerate runs the last turn again in a fork, which the chat continues', async () => {
  const { chat, sessions } = page();
  world.next({ text: 'One.' }, { text: 'Two.' }, { text: 'Zwei.' }, { text: 'Drei.' });
  await chat.sendMessage({ text: '1' });
  await chat.sendMessage({ text: '2' });
  await chat.regenerate();
  expect(shown(chat)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Zwei.']);
  expect(sessions).toHaveLength(2);
  const fork = await world.client.sessions.get(sessions[1]!);
  expect(fork.forkedFrom).toEqual({ sessionId: sessions[0], turn: 1 });
  await chat.sendMessage({ text: '3' });
  expect(chat.messages.at(-1)!.metadata).toMatchObject({ sessionId: sessions[1], turn: 3 });
  expect(world.requests.at(-1)!.messages.map(({ content }) => content)).toEqual(['1', 'One.', '2', 'Zwei.', '3']);
});

test('regenerating an earlier response and editing an earlier message fork before their turns, also after a reload', async () => {
  const first = page();
  world.next({ text: 'One.' }, { text: 'Two.' }, { text: 'Uno.' }, { text: 'Eins.' });
  await first.chat.sendMessage({ text: '1' });
  await first.chat.sendMessage({ text: '2' });
  const { chat, transport, sessions } = page({ sessionId: () => first.sessions[0] });
  chat.messages = await transport.load(chat.id);
  await chat.regenerate({ messageId: 'turn_1' });
  expect(shown(chat)).toEqual(['user: 1', 'assistant: Uno.']);
  await chat.sendMessage({ text: 'one', messageId: chat.messages[0]!.id });
  expect(shown(chat)).toEqual(['user: one', 'assistant: Eins.']);
  expect(world.requests.at(-1)!.messages.map(({ content }) => content)).toEqual(['one']);
  expect(sessions).toHaveLength(2);
});

test('regenerating a response that is being written interrupts the turn that nobody sees any more', async () => {
  const { chat, sessions } = page();
  world.nextInTwo('Wrong ', { text: 'way.' });
  void chat.sendMessage({ text: 'Go' });
  await expect.poll(() => shown(chat)[1]).toBe('assistant: Wrong ');
  await chat.stop();
  world.next({ text: 'Right.' });
  await chat.regenerate();
  expect(shown(chat)).toEqual(['user: Go', 'assistant: Right.']);
  await expect.poll(() => statusOf(sessions[0]!)).toBe('idle');
});

test('a turn that fails is an error of the chat, and regenerate runs it again', async () => {
  const { chat, sessions } = page();
  world.next({ text: 'Fine.' });
  await chat.sendMessage({ text: '1' });
  world.refuseNext();
  await chat.sendMessage({ text: '2' });
  expect(chat.status).toBe('error');
  expect(chat.error?.message).toMatch(/400/);
  world.next({ text: 'Better.' });
  await chat.regenerate();
  expect(shown(chat)).toEqual(['user: 1', 'assistant: Fine.', 'user: 2', 'assistant: Better.']);
  expect(sessions).toHaveLength(2);
});

test('a message that never reached the service is sent by regenerate', async () => {
  const { client } = world;
  const { chat, sessions } = page();
  world.next({ text: 'Fine.' });
  await chat.sendMessage({ text: '1' });
  const { sendMessage } = client.sessions;
  client.sessions.sendMessage = () => Promise.reject(new TypeError('fetch failed'));
  await chat.sendMessage({ text: '2' });
  client.sessions.sendMessage = sendMessage;
  expect(chat.status).toBe('error');
  world.next({ text: 'Here.' });
  await chat.regenerate();
  expect(shown(chat)).toEqual(['user: 1', 'assistant: Fine.', 'user: 2', 'assistant: Here.']);
  expect(sessions).toHaveLength(1);
});

test('a message while the session waits for the page ends that turn', async () => {
  const { chat, sessions } = page();
  world.next({ toolCalls: [{ name: 'refund', arguments: { cents: 7 } }] }, { text: 'Another topic.' });
  await chat.sendMessage({ text: 'Refund' });
  const id = approvalOf(chat)!;
  await chat.sendMessage({ text: 'Never mind' });
  expect(shown(chat).at(-1)).toBe('assistant: Another topic.');
  expect((await world.client.approvals.get(id)).status).toBe('cancelled');
  expect(sessions).toHaveLength(1);
});

test('a file of the user reaches the model, and its part survives a reload', async () => {
  const { chat, sessions } = page({ fileUrl: ({ fileId }) => `/files/${fileId}` });
  world.next({ text: 'A text.' }, { text: 'Again.' });
  const url = `data:text/plain;base64,${Buffer.from('Hello, file').toString('base64')}`;
  await chat.sendMessage({
    text: 'What is it?',
    files: [{ type: 'file', mediaType: 'text/plain', filename: 'a.txt', url }],
  });
  expect(JSON.stringify(world.requests.at(-1)!.messages)).toContain('Hello, file');
  const loaded = page({ sessionId: () => sessions[0], fileUrl: ({ fileId }) => `/files/${fileId}` });
  const messages = await loaded.transport.load(loaded.chat.id);
  const file = messages[0]!.parts.find((part) => part.type === 'file')!;
  expect(file).toMatchObject({
    mediaType: 'text/plain',
    filename: 'a.txt',
    url: expect.stringMatching(/^\/files\/file_/),
  });
  // The stored file is named again, not uploaded again.
  await loaded.chat.sendMessage({ text: 'And now?', files: [file] });
  expect((await world.client.files.list()).data).toHaveLength(1);
});

test('what a user pastes and attaches is sent without NUL, also from a blob: URL', async () => {
  const { chat } = page();
  world.next({ text: 'A text.' });
  const url = URL.createObjectURL(new Blob(['Hello, blob'], { type: 'text/plain' }));
  await chat.sendMessage({
    text: 'Copied\0 from\0 a PDF\ud800',
    files: [{ type: 'file', mediaType: 'text/plain', url }],
  });
  URL.revokeObjectURL(url);
  const sent = JSON.stringify(world.requests.at(-1)!.messages);
  expect(sent).toContain('Copied from a PDF\ufffd');
  expect(sent).toContain('Hello, blob');
  expect(chat.status).toBe('ready');
});

test.each([
  ['is neither in the message nor of the service', 'https://example.com/a.png', 'needs a data: or blob: URL'],
  ['was revoked', 'blob:nodedata:0b1c', 'was revoked'],
])('a file that %s is refused', async (_, url, why) => {
  const { chat } = page();
  await chat.sendMessage({ text: 'See', files: [{ type: 'file', mediaType: 'image/png', url }] });
  expect(chat.status).toBe('error');
  expect(chat.error?.message).toContain(url);
  expect(chat.error?.message).toContain(why);
});

test('the page of an end user does all of it with a session token, and leaves approvals to those who may decide them', async () => {
  const { chat, sessions, transport } = page({ client: world.pageOf('user_1') });
  const calls = [
    { name: 'credit', arguments: { cents: 10 } },
    { name: 'refund', arguments: { cents: 20 } },
  ];
  world.next({ toolCalls: calls }, { text: 'Both done.' }, { text: 'Again.' });
  await chat.sendMessage({ text: 'Both, please' });
  const approvals = () =>
    chat.messages.flatMap(({ parts }) =>
      parts.filter(isToolUIPart).flatMap((part) => (part.state === 'approval-requested' ? part : [])),
    );
  const [credit, refund] = approvals();
  expect(credit!.approval.descriptor).toEqual({ expiresAt: null, by: { endUser: true } });
  await chat.addToolApprovalResponse({ id: credit!.approval.id, approved: true });
  // Not sent yet, because the other one is open too: the user sends it.
  void chat.sendMessage();
  await expect.poll(async () => (await world.client.approvals.get(credit!.approval.id)).status).toBe('approved');
  await world.client.approvals.approve(refund!.approval.id);
  await expect
    .poll(() => shown(chat)[1])
    .toBe('assistant: [credit output-available]|[refund output-available]|Both done.');
  await expect.poll(() => chat.status).toBe('ready');
  await chat.regenerate();
  expect(shown(chat)).toEqual(['user: Both, please', 'assistant: Again.']);
  expect(sessions).toHaveLength(2);
  expect((await world.client.sessions.get(sessions[1]!)).endUser).toMatchObject({ id: 'user_1' });

  const other = page({ client: world.pageOf('user_2'), sessionId: () => sessions[1] });
  await expect(other.transport.load(other.chat.id)).rejects.toMatchObject({ status: 404 });
  expect(await transport.load(chat.id)).toHaveLength(2);
});
