// What spans show of a conversation: in the form of the conventions, and limited.
import type { MessagePart } from '@signalbox/contract';
import { describe, expect, test } from 'vitest';
import { contentOf } from '../../test/support/genai-schemas.ts';
import { JsonText } from '../lib/json/json-text.ts';
import type { ModelCall, ModelEntry, ModelEvent } from '../models/model/model.ts';
import { argumentsContent, askedContent, createHeardResponse, resultContent } from './trace-content.ts';

const KIB = 1024;
/** The length of an attribute: its texts, and what JSON and the marks add. */
const MOST = 80 * KIB;

function asked(transcript: ModelEntry[], more: Partial<ModelCall> = {}) {
  const attributes = askedContent({ instructions: '', tools: [], transcript, ...more } as unknown as ModelCall);
  for (const value of Object.values(attributes)) expect(String(value).length).toBeLessThan(MOST);
  return { attributes, ...contentOf(attributes) } as unknown as {
    attributes: Record<string, unknown>;
    'gen_ai.input.messages': { role: string; parts: Record<string, string>[] }[];
  };
}
const user = (...content: MessagePart[]): ModelEntry => ({ role: 'user', content });
const text = (value: string): MessagePart => ({ type: 'text', text: value });
const partsOf = (...content: MessagePart[]) => asked([user(...content)])['gen_ai.input.messages'][0]!.parts;

function heard(events: ModelEvent[], finishReason = 'stop', shows: ModelCall['shows'] = { reasoning: true }) {
  const response = createHeardResponse({ shows });
  for (const event of events) response.add(event);
  const attributes = response.content(finishReason);
  expect(JSON.stringify(attributes).length).toBeLessThan(2 * MOST);
  return contentOf(attributes)['gen_ai.output.messages'] as { parts: { content: string }[] }[] | undefined;
}

describe('messages', () => {
  const toolCallId = 'call_01';
  test.each<[string, MessagePart, object]>([
    ['a text', text('hi'), { type: 'text', content: 'hi' }],
    [
      'a file, without its bytes',
      { type: 'file', fileId: 'file_01', mediaType: 'image/png', bytes: 8 * KIB * KIB, filename: 'a.png' },
      {
        type: 'file',
        modality: 'image',
        mime_type: 'image/png',
        file_id: 'file_01',
        name: 'a.png',
        size: 8 * KIB * KIB,
      },
    ],
    [
      'a file that is neither image, audio nor video',
      { type: 'file', fileId: 'file_02', mediaType: 'application/pdf', bytes: 1 },
      { type: 'file', modality: 'document', mime_type: 'application/pdf', file_id: 'file_02', size: 1 },
    ],
    [
      'a call',
      { type: 'tool_call', toolCallId, tool: 'look', input: { at: ['a', 1, null] } },
      { type: 'tool_call', id: toolCallId, name: 'look', arguments: { at: ['a', 1, null] } },
    ],
    [
      'a result that is kept as text',
      { type: 'tool_result', toolCallId, output: new JsonText('{"a":1}') },
      { type: 'tool_call_response', id: toolCallId, response: '{"a":1}' },
    ],
    [
      'a failed call',
      { type: 'tool_result', toolCallId, error: 'no such city' },
      { type: 'tool_call_response', id: toolCallId, response: { error: 'no such city' } },
    ],
    [
      'a text that cites',
      { type: 'text', text: 'It rains.', sources: [{ url: 'https://weather.example', title: 'Weather' }] },
      { type: 'text', content: 'It rains.', sources: [{ url: 'https://weather.example', title: 'Weather' }] },
    ],
    [
      'a call that the provider ran',
      { type: 'tool_call', toolCallId, tool: 'web_search', input: { query: 'rain' }, by: 'provider' },
      {
        type: 'server_tool_call',
        id: toolCallId,
        name: 'web_search',
        server_tool_call: { type: 'web_search', input: { query: 'rain' } },
      },
    ],
    [
      'its result',
      { type: 'tool_result', toolCallId, output: [1], by: 'provider' },
      { type: 'server_tool_call_response', id: toolCallId, server_tool_call_response: { type: 'result', output: [1] } },
    ],
    [
      'its failure',
      { type: 'tool_result', toolCallId, error: 'too many', by: 'provider' },
      {
        type: 'server_tool_call_response',
        id: toolCallId,
        server_tool_call_response: { type: 'result', error: 'too many' },
      },
    ],
    ['no output', { type: 'tool_result', toolCallId }, { type: 'tool_call_response', id: toolCallId, response: null }],
  ])('%s', (_, part, expected) => {
    expect(partsOf(part)).toEqual([expected]);
  });

  test('a long text is cut, with its length', () => {
    const [part] = partsOf(text(`${'a'.repeat(32 * KIB - 1)}😀${'b'.repeat(MOST)}`));
    expect(part!.content).toBe(`${'a'.repeat(32 * KIB - 1)}\uFFFD… [${32 * KIB + 1 + MOST} characters in all]`);
  });

  test('of a long conversation, the newest messages are shown, with the number of the others', () => {
    const long = (index: number) => user(text(`${index} ${'x'.repeat(10 * KIB)}`));
    const { attributes, 'gen_ai.input.messages': messages } = asked(Array.from({ length: 100 }, (_, at) => long(at)));
    expect(messages.map(({ parts }) => Number.parseInt(parts[0]!.content!, 10))).toEqual([93, 94, 95, 96, 97, 98, 99]);
    expect(attributes['signalbox.omitted_messages']).toBe(93);
  });

  test('of a message with very many parts, the first are shown, with the number of the others', () => {
    const parts = partsOf(...Array.from({ length: 10_000 }, () => text('x')));
    expect(parts.at(-1)).toEqual({ type: 'text', content: `… [${10_000 - parts.length + 1} more parts]` });
  });

  test.each<[string, unknown]>([
    ['long strings', { texts: Array.from({ length: 20 }, () => 'x'.repeat(MOST)) }],
    ['many items', { items: Array.from({ length: 100_000 }, (_, at) => at) }],
    ['many fields', Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`field ${at}`, at]))],
    ['long names', { ['n'.repeat(MOST)]: 1 }],
  ])('a value with %s is shortened, and keeps its form', (_, input) => {
    const shown = contentOf(argumentsContent(input))['gen_ai.tool.call.arguments'];
    const [part] = partsOf({ type: 'tool_call', toolCallId, tool: 'look', input });
    for (const json of [shown, part!.arguments].map((value) => JSON.stringify(value))) {
      expect(json.length).toBeLessThan(MOST);
      expect(json.slice(-100)).toMatch(/… \[\d+ (characters in all|more)\]/);
    }
  });

  test('a value that is deeper than a call stack is shortened', () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    expect(JSON.stringify(argumentsContent(deep))).toContain('…');
  });
});

describe('a response', () => {
  test('has the text, the reasoning and the calls in the order in which they came', () => {
    const message = heard(
      [
        { type: 'reasoning', delta: 'Think' },
        { type: 'reasoning', delta: '.' },
        { type: 'text', delta: 'He' },
        { type: 'text', delta: 'llo' },
        { type: 'toolInput', operationId: 'op_01', name: 'look', delta: '{' },
        { type: 'toolCall', operationId: 'op_01', name: 'look', input: {} },
        { type: 'toolCall', name: 'ask', input: { of: 1 } },
        { type: 'shown', text: 'Bye' },
      ],
      'tool_call',
    );
    expect(message).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', content: 'Think.' },
          { type: 'text', content: 'Hello' },
          { type: 'tool_call', id: 'call_01', name: 'look', arguments: {} },
          { type: 'tool_call', name: 'ask', arguments: { of: 1 } },
          { type: 'text', content: 'Bye' },
        ],
        finish_reason: 'tool_call',
      },
    ]);
  });

  test('has what the provider ran, and what the text cites', () => {
    const sources = [{ url: 'https://weather.example' }];
    const [message] = heard([
      { type: 'text', delta: 'It rains.' },
      { type: 'ran', calls: [{ tool: 'web_search', input: { query: 'rain' }, output: [1] }], sources },
    ])!;
    expect(message!.parts).toEqual([
      { type: 'text', content: 'It rains.', sources },
      {
        type: 'server_tool_call',
        name: 'web_search',
        server_tool_call: { type: 'web_search', input: { query: 'rain' } },
      },
      { type: 'server_tool_call_response', server_tool_call_response: { type: 'result', output: [1] } },
    ]);
  });

  test('has no reasoning that the agent does not show', () => {
    const [message] = heard(
      [
        { type: 'reasoning', delta: 'Think.' },
        { type: 'text', delta: 'Hi' },
      ],
      'stop',
      {},
    )!;
    expect(message!.parts).toEqual([{ type: 'text', content: 'Hi' }]);
  });

  test('is cut while it comes, and none is shown if there was none', () => {
    const delta = 'x'.repeat(KIB);
    const [message] = heard(
      Array.from({ length: 5000 }, () => ({ type: 'text', delta }) as const),
      'length',
    )!;
    expect(message!.parts[0]!.content).toMatch(/^x{32768}… \[5120000 characters in all\]$/);
    expect(heard([])).toBeUndefined();
  });
});

test.each<[unknown, object | undefined]>([
  [{ output: { a: 1 } }, { a: 1 }],
  [{ output: [1] }, { output: [1] }],
  [{ output: 'sunny' }, { output: 'sunny' }],
  [{ output: null }, { output: null }],
  [{ error: 'failed' }, undefined],
])('the result of a tool is an object, and only that of a successful call is shown: %j', (outcome, expected) => {
  expect(contentOf(resultContent(outcome as { output: unknown }))['gen_ai.tool.call.result']).toEqual(expected);
});
