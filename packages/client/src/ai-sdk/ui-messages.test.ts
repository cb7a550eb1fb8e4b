import { validateUIMessages } from 'ai';
import { expect, test } from 'vitest';
import type { Message } from '../types.generated.ts';
import { toUIMessages } from './ui-messages.ts';

const createdAt = '2026-01-01T00:00:00.000Z';
const file = { type: 'file', fileId: 'file_1', mediaType: 'image/png', bytes: 3, filename: 'a.png' } as const;
const transcript: Message[] = [
  { messageId: 'msg_1', role: 'user', turn: 1, createdAt, content: [{ type: 'text', text: 'Refund 1042' }, file] },
  {
    messageId: 'msg_2',
    role: 'assistant',
    turn: 1,
    createdAt,
    content: [
      { type: 'text', text: 'One moment.' },
      { type: 'tool_call', toolCallId: 'call_1', tool: 'refund', input: { cents: 9900 } },
      { type: 'tool_call', toolCallId: 'call_2', tool: 'receipt', input: {} },
    ],
  },
  {
    messageId: 'msg_3',
    role: 'tool',
    turn: 1,
    createdAt,
    content: [
      { type: 'tool_result', toolCallId: 'call_1', input: { cents: 4900 }, output: 'ok' },
      { type: 'tool_result', toolCallId: 'call_2', output: [file] },
      { type: 'tool_result', toolCallId: 'call_unknown', error: 'No.' },
    ],
  },
  { messageId: 'msg_4', role: 'assistant', turn: 1, createdAt, content: [{ type: 'text', text: 'Done.' }] },
  { messageId: 'msg_5', role: 'user', turn: null, createdAt, content: [{ type: 'text', text: 'Thanks' }] },
];

test('what was rejected is not part of the conversation', () => {
  const said = (role: Message['role'], text: string, more: object = {}): Message => ({
    ...{ messageId: `msg_${text}`, role, turn: 1, createdAt, content: [{ type: 'text', text }] },
    ...more,
  });
  const rejected = { rejected: true };
  const right = [said('user', 'go'), said('assistant', 'right')];
  const whole = [right[0]!, said('assistant', 'wrong', rejected), said('user', 'again', rejected), right[1]!];
  expect(toUIMessages(whole, { sessionId: 'ses_1' })).toEqual(toUIMessages(right, { sessionId: 'ses_1' }));
});

test('a transcript becomes a message for each user message and each turn', async () => {
  const messages = toUIMessages(transcript, { sessionId: 'ses_1', fileUrl: ({ fileId }) => `/files/${fileId}` });
  const shownFile = {
    type: 'file',
    mediaType: 'image/png',
    url: '/files/file_1',
    filename: 'a.png',
    providerMetadata: { signalbox: { fileId: 'file_1', bytes: 3, filename: 'a.png' } },
  };
  expect(messages).toEqual([
    {
      id: 'msg_1',
      role: 'user',
      metadata: { sessionId: 'ses_1', turn: 1 },
      parts: [{ type: 'text', text: 'Refund 1042', state: 'done' }, shownFile],
    },
    {
      id: 'turn_1',
      role: 'assistant',
      metadata: { sessionId: 'ses_1', turn: 1 },
      parts: [
        { type: 'step-start' },
        { type: 'text', text: 'One moment.', state: 'done' },
        {
          type: 'tool-refund',
          toolCallId: 'call_1',
          state: 'output-available',
          input: { cents: 4900 },
          output: 'ok',
          providerExecuted: true,
        },
        {
          type: 'tool-receipt',
          toolCallId: 'call_2',
          state: 'output-available',
          input: {},
          output: [file],
          providerExecuted: true,
        },
        shownFile,
        { type: 'step-start' },
        { type: 'text', text: 'Done.', state: 'done' },
      ],
    },
    {
      id: 'msg_5',
      role: 'user',
      metadata: { sessionId: 'ses_1', turn: null },
      parts: [{ type: 'text', text: 'Thanks', state: 'done' }],
    },
  ]);
  await expect(validateUIMessages({ messages })).resolves.toHaveLength(3);
});

test('what a provider ran has its result, and what a text cites is a source part after it', () => {
  const by = 'provider' as const;
  const entry = (turn: number): Message => ({
    messageId: `msg_${turn}`,
    role: 'assistant',
    turn,
    createdAt: '2026-01-31T09:30:00.000Z',
    content: [
      { type: 'text', text: 'Ada won.', sources: [{ url: 'https://example.com/', title: 'A' }, { title: 'a.pdf' }] },
      { type: 'tool_call', toolCallId: 'call_1', tool: 'web_search', input: {}, by },
      { type: 'tool_result', toolCallId: 'call_1', output: [], by },
    ],
  });
  const [message] = toUIMessages([entry(1)], { sessionId: 'ses_1' });
  expect(message!.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'text', text: 'Ada won.' },
    { type: 'source-url', url: 'https://example.com/', title: 'A' },
    { type: 'source-document', title: 'a.pdf' },
    { type: 'tool-web_search', state: 'output-available', providerExecuted: true },
  ]);
});
