// What a server of chat completions gets back of its responses.
import { expect, test } from 'vitest';
import { CHAT_DATA, type ChatData, chatDataExtractor } from './chat-data.ts';

function dataOf(...deltas: object[]): ChatData {
  const extractor = chatDataExtractor.createStreamExtractor();
  for (const delta of deltas) extractor.processChunk({ choices: [{ index: 0, delta }] });
  return extractor.buildMetadata()![CHAT_DATA] as unknown as ChatData;
}

test.each<[string, object[], Partial<ChatData>]>([
  ['no reasoning', [{ content: 'Hi' }], { reasoningIn: null, message: {}, calls: [] }],
  [
    'the field of DeepSeek',
    [{ reasoning_content: 'h' }, { reasoning_content: 'm' }],
    { reasoningIn: 'reasoning_content' },
  ],
  ['the field of Groq', [{ reasoning: 'h' }, { reasoning: 'm' }], { reasoningIn: 'reasoning' }],
  ['a field that is null or empty', [{ reasoning: null, reasoning_content: '' }], { reasoningIn: null }],
  [
    'details, whose pieces are one text with the signature',
    [
      { reasoning: 'h', reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'h', signature: null }] },
      { reasoning: 'm', reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'm' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 0, text: '', signature: 'S' }] },
      { reasoning_details: [{ type: 'reasoning.encrypted', index: 1, data: 'E', id: 'rs_1' }] },
      { reasoning_details: [{ type: 'reasoning.encrypted', index: 1, data: 'F', id: 'rs_2' }] },
      { reasoning_details: [{ type: 'reasoning.new', anything: [1] }] },
    ],
    {
      reasoningIn: null,
      message: {
        reasoning_details: [
          { type: 'reasoning.text', index: 0, text: 'hm', signature: 'S' },
          { type: 'reasoning.encrypted', index: 1, data: 'E', id: 'rs_1' },
          { type: 'reasoning.encrypted', index: 1, data: 'F', id: 'rs_2' },
          { type: 'reasoning.new', anything: [1] },
        ],
      },
    },
  ],
  [
    'a signature that comes without a text, with the text before it',
    [
      { reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'h' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'm' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 0, signature: 'S' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 1, text: null, signature: null }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 1, text: 'k' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 1, text: null, signature: 'T' }] },
    ],
    {
      message: {
        reasoning_details: [
          { type: 'reasoning.text', index: 0, text: 'hm', signature: 'S' },
          { type: 'reasoning.text', index: 1, text: 'k', signature: 'T' },
        ],
      },
    },
  ],
  [
    'other fields',
    [
      { reasoning_text: 'h', extra_content: { google: { thought_signature: 'S' } } },
      { reasoning_text: 'm', thinking_id: 7 },
    ],
    { message: { reasoning_text: 'hm', extra_content: { google: { thought_signature: 'S' } }, thinking_id: 7 } },
  ],
  [
    'fields of calls, in the order of the calls',
    [
      { tool_calls: [{ index: 0, id: 'a', function: { name: 'look', arguments: '' } }] },
      { tool_calls: [{ index: 1, id: 'b', extra_content: { vertex: { thought_signature: 'S' } } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
    ],
    { calls: [null, { extra_content: { vertex: { thought_signature: 'S' } } }] },
  ],
])('keeps %s', (_title, deltas, expected) => {
  expect(dataOf(...deltas)).toMatchObject(expected);
});

test('keeps nothing of what is longer than its limit, and of chunks that have no delta', () => {
  const details = [{ type: 'reasoning.encrypted', data: 'x'.repeat(1024 * 1024) }];
  expect(dataOf({ reasoning_details: details }).message).toEqual({});
  const extractor = chatDataExtractor.createStreamExtractor();
  for (const chunk of [
    null,
    7,
    {},
    { choices: null },
    { choices: [{}] },
    { choices: [{ delta: { tool_calls: [null] } }] },
  ])
    extractor.processChunk(chunk);
  expect(extractor.buildMetadata()).toEqual({ [CHAT_DATA]: { reasoningIn: null, message: {}, calls: [] } });
});
