/** Bedrock's ConverseStream: each event in a binary frame of its own, and errors as exceptions. */
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { type ModelResponse, pieces, stream, textOfInput, type Wire } from './provider-server.ts';

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()),
  (text) => Buffer.from(text),
);

export function frame(kind: 'event' | 'exception', type: string, payload: object): Buffer {
  const text = (value: string) => ({ type: 'string' as const, value });
  return Buffer.from(
    codec.encode({
      headers: {
        [`:${kind}-type`]: text(type),
        ':content-type': text('application/json'),
        ':message-type': text(kind),
      },
      body: Buffer.from(JSON.stringify(payload)),
    }),
  );
}

export const converse: Wire = {
  basePath: '',
  respond({ parts = [], stop, usage = { input: 10, cached: 0, output: 5 }, end = 'done' }) {
    return (response) => {
      // What it adds so that the length says nothing about the text.
      const event = (type: string, payload: object) => frame('event', type, { ...payload, p: 'abcdefghijklm' });
      const isCalled = parts.some((part) => 'call' in part);
      const stopReason =
        stop === 'maxOutputTokens'
          ? 'max_tokens'
          : stop === 'refusal'
            ? 'guardrail_intervened'
            : isCalled
              ? 'tool_use'
              : 'end_turn';
      const { input, cached, written = 0, output } = usage;
      return stream(
        response,
        end,
        {
          before: [
            event('messageStart', { role: 'assistant' }),
            ...parts.flatMap((part, index) => blockEvents(part, index).map(([type, payload]) => event(type, payload))),
          ],
          last: [
            event('messageStop', { stopReason }),
            event('metadata', {
              usage: {
                inputTokens: input - cached - written,
                outputTokens: output,
                totalTokens: input + output,
                cacheReadInputTokens: cached,
                cacheWriteInputTokens: written,
              },
              metrics: { latencyMs: 551 },
            }),
          ],
          error: (kind) =>
            kind === 'overloaded'
              ? frame('exception', 'serviceUnavailableException', {
                  message: 'Bedrock is unable to process your request.',
                })
              : frame('exception', 'throttlingException', {
                  message: 'Too many tokens, please wait before trying again.',
                }),
        },
        'application/vnd.amazon.eventstream',
      );
    };
  },
  error: (_status, message) => ({ message }),
};

function blockEvents(part: NonNullable<ModelResponse['parts']>[number], contentBlockIndex: number): [string, object][] {
  const delta = (made: object): [string, object] => ['contentBlockDelta', { contentBlockIndex, delta: made }];
  const stop: [string, object] = ['contentBlockStop', { contentBlockIndex }];
  if ('reasoning' in part) {
    const signature = part.seal === undefined ? [] : [delta({ reasoningContent: { signature: part.seal } })];
    return [...part.reasoning.map((text) => delta({ reasoningContent: { text } })), ...signature, stop];
  }
  if ('text' in part) return [...part.text.map((text) => delta({ text })), stop];
  const toolUse = { toolUseId: `tooluse_${contentBlockIndex}`, name: part.call };
  return [
    ['contentBlockStart', { contentBlockIndex, start: { toolUse } }],
    ...pieces(textOfInput(part.input)).map((input) => delta({ toolUse: { input } })),
    stop,
  ];
}
