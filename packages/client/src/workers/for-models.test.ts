import { expect, test } from 'vitest';
import { NotFoundError, SignalboxError } from '../errors.ts';
import type { FilePart, Message, MessagePart } from '../types.generated.ts';
import { TurnFailedError, TurnLostError } from './errors.ts';
import { callForModel, dataUrl, definitionOf, entriesOf, failureOf, resultOfFinish } from './for-models.ts';
import type { Turn } from './turn.ts';

function turnWith(messages: [Message['role'], ...MessagePart[]][], more: Partial<Turn> = {}): Turn {
  return {
    messages: messages.map(([role, ...content], index) => ({
      messageId: `msg_${index}`,
      role,
      turn: 1,
      content,
      createdAt: '2026-01-01T00:00:00.000Z',
    })),
    ...more,
  } as unknown as Turn;
}
const text = (value: string) => ({ type: 'text' as const, text: value });
const call = (id: string, input: unknown = {}) => {
  return { type: 'tool_call' as const, toolCallId: id, tool: 'pay', input };
};
const file = (fileId: string, mediaType: string, bytes = 3): FilePart => ({ type: 'file', fileId, mediaType, bytes });
const refusal = (status: number) => ({ status, code: 'not_found' as const, detail: 'It is too long.' });

test('a call that never got a result gets an error, because models refuse a transcript without one', async () => {
  const turn = turnWith([
    ['user', text('Pay')],
    ['assistant', text('Yes. '), call('c1'), call('c2')],
    ['tool', { type: 'tool_result', toolCallId: 'c2', output: 2 }],
    ['user', text('Again')],
  ]);
  const entries = await entriesOf(turn);
  expect(entries.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user']);
  const results = entries.flatMap((entry) => (entry.role === 'tool' ? entry.results : []));
  expect(results).toMatchObject([
    { toolCallId: 'c1', tool: 'pay', result: { isError: true } },
    { toolCallId: 'c2', tool: 'pay', result: { isError: false, text: '2', output: 2 } },
  ]);
});

test('results say what happened: errors, unknown outcomes and inputs that an approver changed', async () => {
  const results = [
    { output: 'paid' },
    { output: undefined },
    { error: 'No card' },
    { outcomeUnknown: true },
    { input: { order: '2' }, output: { ok: true } },
  ];
  const turn = turnWith([
    ['assistant', ...results.map((_, index) => call(`c${index}`))],
    ['tool', ...results.map((result, index) => ({ type: 'tool_result' as const, toolCallId: `c${index}`, ...result }))],
  ]);
  const [, entry] = await entriesOf(turn);
  expect(entry?.role === 'tool' && entry.results.map(({ result }) => result)).toEqual([
    { text: 'paid', isError: false, output: 'paid' },
    { text: 'null', isError: false, output: null },
    { text: 'Error: No card', isError: true, output: undefined },
    { text: 'Error: the outcome of this call is unknown.', isError: true, output: undefined },
    {
      text: 'The approver changed the input of this call to {"order":"2"}. Its result: {"ok":true}',
      isError: false,
      output: undefined,
    },
  ]);
});

test('entries without anything to read are left out, and unknown parts are ignored', async () => {
  const unknown = { type: 'hologram', data: 'x' } as unknown as MessagePart;
  const turn = turnWith([['user', unknown], ['assistant'], ['tool'], ['user', text('Hello'), unknown]]);
  expect(await entriesOf(turn)).toEqual([{ role: 'user', messageId: 'msg_3', parts: [text('Hello')] }]);
});

test('files are read newest first up to 20 MiB, each once; the rest are names', async () => {
  const read: string[] = [];
  const large = 12 * 1024 * 1024;
  const turn = turnWith(
    [
      ['user', file('file_old', 'image/png', large), file('file_small', 'text/csv; charset=windows-1252')],
      [
        'user',
        file('file_new', 'image/png', large),
        file('file_zip', 'application/zip'),
        file('file_new', 'image/png'),
      ],
    ],
    {
      fileContent: async (fileId) => {
        read.push(fileId);
        return fileId === 'file_small' ? Uint8Array.of(0xfc, 0x2c, 0x62) : new Uint8Array(large);
      },
    },
  );
  const [first, second] = await entriesOf(turn);
  expect(read).toEqual(['file_new', 'file_small']);
  expect(first).toMatchObject({
    parts: [
      text(`[file file_old: image/png, ${large} bytes]`),
      text('[file file_small: text/csv; charset=windows-1252, 3 bytes]\nü,b'),
    ],
  });
  expect(second).toMatchObject({
    parts: [{ type: 'media' }, text('[file file_zip: application/zip, 3 bytes]'), { type: 'media' }],
  });
});

test('a deleted file is said to be deleted; another failure to read one ends the turn', async () => {
  const failing = (error: Error) =>
    turnWith([['user', file('file_1', 'image/png')]], { fileContent: () => Promise.reject(error) });
  expect(await entriesOf(failing(new NotFoundError(refusal(404))))).toMatchObject([
    { parts: [text('[file file_1: image/png, 3 bytes] This file was deleted.')] },
  ]);
  await expect(entriesOf(failing(new SignalboxError(refusal(503))))).rejects.toThrow('503');
});

test('bytes become a data URL, however many they are', () => {
  const data = Uint8Array.from({ length: 100_001 }, (_, index) => index % 256);
  const url = dataUrl({ type: 'media', mediaType: 'image/png', filename: 'x', data });
  expect(url).toBe(`data:image/png;base64,${Buffer.from(data).toString('base64')}`);
});

test('a call that the service refuses to accept is an error for the model; a lost turn is not', async () => {
  const refusing = (error: Error) => ({ toolResult: () => Promise.reject(error) }) as unknown as Turn;
  for (const status of [400, 413]) {
    const result = await callForModel(refusing(new SignalboxError(refusal(status))), 'pay', {});
    expect(result).toEqual({
      text: 'Error: The call was not accepted: It is too long.',
      isError: true,
      output: undefined,
    });
  }
  const lost = new TurnLostError('Lost');
  await expect(callForModel(refusing(lost), 'pay', {})).rejects.toBe(lost);
});

test.each([
  [{ statusCode: 429 }, 'model_rate_limited'],
  [{ status: 408 }, 'model_timeout'],
  [{ status: 401 }, 'model_key_rejected'],
  [{ status: 422 }, 'model_rejected'],
  [{ status: 500 }, 'model_unavailable'],
  [{ cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }, 'model_unavailable'],
  [{ lastError: Object.assign(new Error('x'), { statusCode: 529 }) }, 'model_unavailable'],
])('an error with %j has the code %s and says nothing that it says', (fields, code) => {
  const thrown = Object.assign(new Error('The prompt was: secret'), fields);
  const failure = failureOf(thrown) as TurnFailedError;
  expect(failure).toBeInstanceOf(TurnFailedError);
  expect(failure).toMatchObject({ code, cause: thrown });
  expect(failure.message).not.toContain('secret');
});

test('errors of the program, of the turn and of the service stay as they are', () => {
  const own = new Error('My own');
  const coded = new TurnFailedError('out_of_stock', 'None left');
  const lost = new TurnLostError('Lost');
  const ofService = new SignalboxError(refusal(500));
  for (const error of [own, coded, lost, ofService, 'a string', null]) expect(failureOf(error)).toBe(error);
  // An error within one of a framework.
  expect(failureOf(new Error('Tool failed', { cause: coded }))).toBe(coded);
});

test('finish reasons of every provider become stop reasons', () => {
  const reasons = ['stop', 'length', 'MAX_TOKENS', 'max_output_tokens', 'content_filter', 'SAFETY', undefined];
  expect(reasons.map((reason) => resultOfFinish(reason).stopReason)).toEqual([
    'endTurn',
    'maxOutputTokens',
    'maxOutputTokens',
    'maxOutputTokens',
    'refusal',
    'refusal',
    'endTurn',
  ]);
  expect(resultOfFinish('constructor')).toEqual({ stopReason: 'endTurn' });
});

test('a definition has the schema without its `$schema`, and only the policy of its own name', () => {
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', required: ['a'] };
  expect(definitionOf('toString', undefined, schema, { pay: { approval: 'always' } })).toEqual({
    type: 'client',
    name: 'toString',
    description: '',
    inputSchema: { type: 'object', properties: {}, required: ['a'] },
  });
});

test('a PDF is given from its first line on', async () => {
  const bytes = new TextEncoder().encode('\r\n%PDF-1.4\n');
  const turn = turnWith([['user', file('file_pdf', 'application/pdf')]], { fileContent: async () => bytes });
  const [entry] = await entriesOf(turn);
  expect(entry).toMatchObject({ parts: [{ type: 'media', data: new TextEncoder().encode('%PDF-1.4\n') }] });
});
