// How a tool's result appears in the prompt.
import type { MessagePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { toCallOptions } from './prompt.ts';

const toolCallId = 'call_1';
const requested = { type: 'tool_call' as const, toolCallId, tool: 'pay', input: { euros: 90 } };

function promptOutputOf(result: Omit<Extract<MessagePart, { type: 'tool_result' }>, 'type' | 'toolCallId'>): unknown {
  const { prompt } = toCallOptions(
    {
      organizationId: '',
      environment: 'production',
      config: { provider: 'openai', model: 'any' },
      instructions: '',
      tools: [],
      limits: { maxOutputTokens: null },
      outputSchema: null,
      transcript: [
        { role: 'user', content: [{ type: 'text', text: 'Pay it back' }] },
        { role: 'assistant', content: [requested] },
        { role: 'tool', content: [{ type: 'tool_result', toolCallId, ...result }] },
      ],
      callsBefore: 1,
    },
    false,
  );
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

test('the model is told which input a person used instead of its own, so that it does not report its own', () => {
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
