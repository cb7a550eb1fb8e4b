import { expect, test } from 'vitest';
import { errorInBody } from './provider-error.ts';
import { type RefusedParameter, refusedParameterIn, withoutRefused } from './refused-parameters.ts';

const openai = (message: string, more: object = {}) => ({ error: { message, type: 'invalid_request_error', ...more } });

test.each<[RefusedParameter | undefined, unknown]>([
  [
    'max_tokens',
    openai(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      {
        code: 'unsupported_parameter',
        param: 'max_tokens',
      },
    ),
  ],
  [
    'max_tokens',
    openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"),
  ],
  ['max_completion_tokens', openai('Unrecognized request argument supplied: max_completion_tokens')],
  ['stream_options', openai('x', { code: 'unknown_parameter', param: 'stream_options' })],
  ['stream_options', openai('Unrecognized request argument supplied: stream_options', { param: null, code: null })],
  ['stream_options', { error: { message: "Extra inputs are not permitted, field: 'stream_options', value: {}" } }],
  [
    'stream_options',
    { object: 'error', message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'stream_options'] }] } },
  ],
  [
    'max_tokens',
    openai("litellm.UnsupportedParamsError: azure does not support parameters: ['max_tokens'], for model=gpt-5.", {
      param: 'None',
      code: '400',
    }),
  ],
  ['stream_options', { message: 'Malformed input request: #: extraneous key [stream_options] is not permitted' }],
  ['stream_options', { code: 'x', error: 'Argument not supported on this model: stream_options' }],
  ['include', openai('x', { code: 'unsupported_parameter', param: 'include' })],
  // The agent's own, another fault, and a parameter of something else.
  [undefined, openai('x', { code: 'unsupported_parameter', param: 'temperature' })],
  [undefined, openai('max_tokens is too large: 5000', { code: 'invalid_value', param: 'max_tokens' })],
  [undefined, openai('x', { code: 'unknown_parameter', param: 'messages[0].include' })],
  [undefined, openai('max_tokens must be at least 1')],
  [undefined, { code: 'x', error: 'Argument not supported on this model: reasoning_effort' }],
  [undefined, openai('x')],
  [undefined, ''],
])('%s is what the server does not know', (parameter, body) => {
  expect(refusedParameterIn(errorInBody(JSON.stringify(body)))).toBe(parameter);
});

test.each<[RefusedParameter[], object]>([
  [[], { max_tokens: 9, stream_options: { include_usage: true } }],
  [['stream_options'], { max_tokens: 9 }],
  [['max_tokens'], { max_completion_tokens: 9, stream_options: { include_usage: true } }],
  [['max_tokens', 'max_completion_tokens', 'stream_options', 'include'], {}],
])('a request without %j has the rest, or the other name', (refused, request) => {
  const body = JSON.stringify({ max_tokens: 9, stream_options: { include_usage: true } });
  expect(JSON.parse(withoutRefused(body, refused))).toEqual(request);
});
