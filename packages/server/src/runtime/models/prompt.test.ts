// What a provider's model is told of the calls that it asked for.
import type { MessagePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { toCallOptions } from './prompt.ts';

const toolCallId = 'call_1';
const asked = { type: 'tool_call' as const, toolCallId, tool: 'pay', input: { euros: 90 } };

function told(result: Omit<Extract<MessagePart, { type: 'tool_result' }>, 'type' | 'toolCallId'>): unknown {
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
        { role: 'assistant', content: [asked] },
        { role: 'tool', content: [{ type: 'tool_result', toolCallId, ...result }] },
      ],
      callsBefore: 1,
    },
    false,
  );
  expect(prompt.slice(0, 2)).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: [{ input: asked.input }] },
  ]);
  return (prompt[2] as { content: { output: unknown }[] }).content[0]!.output;
}

test('a result is what the tool gave', () => {
  expect(told({ output: { paid: 90 } })).toEqual({ type: 'json', value: { paid: 90 } });
  expect(told({ output: 'paid' })).toEqual({ type: 'text', value: 'paid' });
  expect(told({ error: 'No money.' })).toEqual({ type: 'error-text', value: 'Error: No money.' });
});

test('with the input that a person put in the place of the model’s own, or it would tell people of that', () => {
  const edited = 'A person changed the input of this call to {"euros":45}. Its result: ';
  const input = { euros: 45 };
  expect(told({ input, output: { paid: 45 } })).toEqual({ type: 'text', value: `${edited}{"paid":45}` });
  expect(told({ input, output: 'paid' })).toEqual({ type: 'text', value: `${edited}paid` });
  expect(told({ input, output: null })).toEqual({ type: 'text', value: `${edited}null` });
  expect(told({ input, error: 'No money.' })).toEqual({ type: 'error-text', value: `${edited}Error: No money.` });
});
