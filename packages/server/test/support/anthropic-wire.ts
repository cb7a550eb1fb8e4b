/** Anthropic's Messages, streaming: a message of content blocks, each with a start, deltas and a stop. */
import { pieces, type ResponsePart, stream, textOfInput, type Wire } from './provider-server.ts';

export const anthropicMessages: Wire = {
  basePath: '/v1',
  respond({ parts = [], stop, usage = { input: 10, cached: 0, output: 5 }, end = 'done' }) {
    return (response, { body }) => {
      const input = {
        input_tokens: usage.input - usage.cached - (usage.written ?? 0),
        cache_creation_input_tokens: usage.written ?? 0,
        cache_read_input_tokens: usage.cached,
      };
      const cache_creation = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 };
      const message = {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: body.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        stop_details: null,
        usage: { ...input, cache_creation, output_tokens: 1, service_tier: 'standard', inference_geo: 'global' },
      };
      const stop_reason =
        stop === 'maxOutputTokens'
          ? 'max_tokens'
          : stop === 'refusal'
            ? 'refusal'
            : parts.some((part) => 'call' in part)
              ? 'tool_use'
              : 'end_turn';
      const stop_details = stop === 'refusal' ? { type: 'refusal', category: 'cyber', explanation: 'Not this.' } : null;
      return stream(response, end, {
        before: [
          event('message_start', { message }),
          event('ping', {}),
          ...parts.flatMap((part, index) => blockEvents(part, index)),
        ],
        last: [
          event('message_delta', {
            delta: { stop_reason, stop_sequence: null, stop_details },
            usage: { ...input, output_tokens: usage.output, output_tokens_details: { thinking_tokens: 1 } },
          }),
          event('message_stop', {}),
        ],
        error: (kind) =>
          event('error', anthropicMessages.error(kind === 'overloaded' ? 529 : 429, 'Try again') as object),
      });
    };
  },
  error: (status, message) => ({
    type: 'error',
    error: { details: null, type: errorTypes[status] ?? 'api_error', message },
    request_id: 'req_1',
  }),
};

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

/** Adds the spaces that Anthropic sends after an event. */
function event(type: string, more: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}   \n\n`;
}

function blockEvents(part: ResponsePart, index: number): string[] {
  const block = (content_block: object, deltas: object[]) => [
    event('content_block_start', { index, content_block }),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ];
  if ('reasoning' in part) {
    return block({ type: 'thinking', thinking: '', signature: '' }, [
      ...part.reasoning.map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: part.seal ?? 'signed' },
    ]);
  }
  if ('call' in part) {
    return block({ type: 'tool_use', id: `toolu_${index}`, name: part.call, input: {} }, [
      { type: 'input_json_delta', partial_json: '' },
      ...pieces(textOfInput(part.input)).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    ]);
  }
  return block(
    { type: 'text', text: '' },
    part.text.map((text) => ({ type: 'text_delta', text })),
  );
}
