/** OpenAI's Responses API, streaming: named and numbered events, one output item after another. */
import { openAiError } from './openai-server.ts';
import { type ModelResponse, pieces, stream, textOfInput, type Wire } from './provider-server.ts';

export const responses: Wire = {
  basePath: '/v1',
  respond({ parts = [], stop, usage = { input: 10, cached: 0, output: 5 }, end = 'done' }) {
    return (response, { body }) => {
      let sequence = 0;
      const event = (type: string, more: object) => {
        sequence += 1;
        return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence - 1, ...more })}\n\n`;
      };
      const whole = (status: string, more: object = {}) => ({
        response: {
          id: 'resp_1',
          object: 'response',
          created_at: 1,
          status,
          model: body.model,
          output: [],
          error: null,
          incomplete_details: null,
          service_tier: 'default',
          usage: null,
          ...more,
        },
      });
      const before = [
        event('response.created', whole('in_progress')),
        event('response.in_progress', whole('in_progress')),
        ...parts.flatMap((part, output_index) => itemEvents(part, output_index, stop, event)),
      ];
      const used = {
        usage: {
          input_tokens: usage.input,
          input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.written ?? 0 },
          output_tokens: usage.output,
          output_tokens_details: { reasoning_tokens: 1 },
          total_tokens: usage.input + usage.output,
        },
      };
      const last =
        stop === 'maxOutputTokens'
          ? event(
              'response.incomplete',
              whole('incomplete', { incomplete_details: { reason: 'max_output_tokens' }, ...used }),
            )
          : event('response.completed', whole('completed', used));
      return stream(response, end, {
        before,
        last: [last],
        // The error occurs twice: in an error event, and in the failed response.
        error: (kind) => {
          const code = kind === 'overloaded' ? 'server_error' : 'rate_limit_exceeded';
          return [
            event('error', openAiError(kind === 'overloaded' ? 500 : 429, 'Try again')),
            event('response.failed', whole('failed', { error: { code, message: 'Try again' } })),
          ].join('');
        },
      });
    };
  },
  error: openAiError,
};

type Part = NonNullable<Parameters<Wire['respond']>[0]['parts']>[number];

function itemEvents(
  part: Part,
  output_index: number,
  stop: ModelResponse['stop'],
  event: (type: string, more: object) => string,
): string[] {
  if ('reasoning' in part) {
    const item = { id: `rs_${output_index}`, type: 'reasoning', summary: [] };
    const at = { item_id: item.id, output_index, summary_index: 0 };
    const text = part.reasoning.join('');
    return [
      event('response.output_item.added', { output_index, item: { ...item, encrypted_content: 'early' } }),
      event('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } }),
      ...part.reasoning.map((delta) => event('response.reasoning_summary_text.delta', { ...at, delta })),
      event('response.reasoning_summary_text.done', { ...at, text }),
      event('response.reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text } }),
      event('response.output_item.done', {
        output_index,
        item: { ...item, summary: [{ type: 'summary_text', text }], encrypted_content: part.seal ?? 'sealed' },
      }),
    ];
  }
  if ('call' in part) {
    const text = textOfInput(part.input);
    const item = { id: `fc_${output_index}`, type: 'function_call', call_id: `call_${output_index}`, name: part.call };
    const at = { item_id: item.id, output_index };
    return [
      event('response.output_item.added', { output_index, item: { ...item, arguments: '', status: 'in_progress' } }),
      ...pieces(text).map((delta) =>
        event('response.function_call_arguments.delta', { ...at, delta, obfuscation: 'x1' }),
      ),
      event('response.function_call_arguments.done', { ...at, arguments: text }),
      event('response.output_item.done', {
        output_index,
        item: { ...item, arguments: text, status: stop === 'maxOutputTokens' ? 'incomplete' : 'completed' },
      }),
    ];
  }
  const text = part.text.join('');
  const item = {
    id: `msg_${output_index}`,
    type: 'message',
    role: 'assistant',
    content: [],
    // The only property of a text that must be sent back; it has a few possible values.
    ...(part.seal && { phase: 'commentary' }),
  };
  const at = { item_id: item.id, output_index, content_index: 0 };
  const [kind, said] =
    stop === 'refusal' ? ['refusal', { refusal: text }] : ['output_text', { text, annotations: [], logprobs: [] }];
  return [
    event('response.output_item.added', { output_index, item: { ...item, status: 'in_progress' } }),
    event('response.content_part.added', {
      ...at,
      part: { type: kind, ...said, [stop === 'refusal' ? 'refusal' : 'text']: '' },
    }),
    ...part.text.map((delta) => event(`response.${kind}.delta`, { ...at, delta, obfuscation: 'x1' })),
    event(`response.${kind}.done`, { ...at, ...said }),
    event('response.content_part.done', { ...at, part: { type: kind, ...said } }),
    event('response.output_item.done', {
      output_index,
      item: { ...item, status: 'completed', content: [{ type: kind, ...said }] },
    }),
  ];
}
