// How tool calls and their results appear in the prompt.
import type { MessagePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import type { ModelCall } from '../model/model.ts';
import { promptRulesOf } from '../model/prompt-rules.ts';
import { toCallOptions } from './prompt.ts';
import { placeholderFiles } from './prompt-files.ts';

const toolCallId = 'call_1';
const requested = { type: 'tool_call' as const, toolCallId, tool: 'pay', input: { euros: 90 } };

const userSays = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] });

function optionsOf(transcript: ModelCall['transcript'], tools: ModelCall['tools'] = []) {
  return toCallOptions(
    {
      organizationId: '',
      sessionId: '',
      environment: 'production',
      config: { provider: 'openai', model: 'any' },
      instructions: '',
      tools,
      limits: { maxOutputTokens: null },
      outputSchema: null,
      transcript,
      callsBefore: 1,
    },
    {
      ...placeholderFiles({ transcript, config: { provider: 'openai', model: 'any' } } as unknown as ModelCall),
      partsOf: () => [],
    },
    { takesSchema: false, takesToolFiles: true, target: 'openai', rules: promptRulesOf('openai', { config: {} }) },
  );
}

function promptOutputOf(result: Omit<Extract<MessagePart, { type: 'tool_result' }>, 'type' | 'toolCallId'>): unknown {
  const { prompt } = optionsOf([
    userSays('Pay it back'),
    { role: 'assistant', content: [requested] },
    { role: 'tool', content: [{ type: 'tool_result', toolCallId, ...result }] },
  ]);
  expect(prompt.slice(0, 2)).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: [{ input: requested.input }] },
  ]);
  return (prompt[2] as { content: { output: unknown }[] }).content[0]!.output;
}

test('the model gets what the tool returned', () => {
  expect(promptOutputOf({ output: { paid: 90 } })).toEqual({ type: 'json', value: { paid: 90 } });
  expect(promptOutputOf({ output: 'paid' })).toEqual({ type: 'text', value: 'paid' });
  expect(promptOutputOf({ error: 'No money.' })).toEqual({ type: 'error-text', value: 'Error: No money.' });
});

test('a result says which input the approver used, so that the model does not report its own', () => {
  const edited = 'The approver changed the input of this call to {"euros":45}. Its result: ';
  const input = { euros: 45 };
  expect(promptOutputOf({ input, output: { paid: 45 } })).toEqual({ type: 'text', value: `${edited}{"paid":45}` });
  expect(promptOutputOf({ input, output: 'paid' })).toEqual({ type: 'text', value: `${edited}paid` });
  expect(promptOutputOf({ input, output: null })).toEqual({ type: 'text', value: `${edited}null` });
  expect(promptOutputOf({ input, error: 'No money.' })).toEqual({
    type: 'error-text',
    value: `${edited}Error: No money.`,
  });
});

test('a transcript with calls of tools that the agent does not have is sent with definitions of them', () => {
  const transcript: ModelCall['transcript'] = [
    userSays('Pay it back'),
    { role: 'assistant', content: [requested] },
    { role: 'tool', content: [{ type: 'tool_result', toolCallId, output: 'paid' }] },
    userSays('Thanks'),
  ];
  expect(optionsOf(transcript).tools).toMatchObject([
    { name: 'pay', description: expect.stringContaining('not available') },
  ]);
  const other = { name: 'other', description: 'Another.', inputSchema: {} };
  expect(optionsOf(transcript, [other]).tools).toMatchObject([{ name: 'other' }]);
  expect(optionsOf([userSays('Hi')]).tools).toBeUndefined();
});

test('a call whose turn failed before it had a result is followed by one', () => {
  const other = { ...requested, toolCallId: 'call_2' };
  const { prompt } = optionsOf([
    userSays('Pay it back'),
    { role: 'assistant', content: [requested, other] },
    { role: 'tool', content: [{ type: 'tool_result', toolCallId, output: 'paid' }] },
    userSays('And now?'),
  ]);
  const results = prompt.flatMap((message) => (message.role === 'tool' ? message.content : []));
  expect(prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  expect(results).toMatchObject([
    { toolCallId, output: { type: 'text', value: 'paid' } },
    { toolCallId: 'call_2', toolName: 'pay', output: { type: 'error-text' } },
  ]);
});
