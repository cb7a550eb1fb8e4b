// Whose fault each failure of a provider is, and what is shown of it. The bodies are what the servers send.
import { describe, expect, test } from 'vitest';
import { errorInEvent } from '../model/provider-error.ts';
import { errorAfterOk, refusalOf } from './provider-failure.ts';

const clock = { now: () => new Date('2026-01-02T03:04:05Z') };
const sent = { key: undefined, body: '{"model":"m","messages":[{"role":"user","content":"my own words"}]}' };

const refused = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  refusalOf(
    new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers }),
    sent,
    clock,
  ).then(({ failure }) => failure);
const streamed = (event: unknown) => errorAfterOk(errorInEvent(event)!, sent, new Headers(), clock);
/** A request with an image. */
const withImage = { ...sent, media: new Set(['image'] as const) };

const openai = (message: string, more: object = {}) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null, ...more },
});
const anthropic = (type: string, message: string) => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_1',
});
const google = (code: number, status: string, message: string, details: object[] = []) => ({
  error: { code, message, status, details },
});
const mistral = (message: unknown, type: string, code: string | null = null) => ({
  object: 'error',
  message,
  type,
  param: null,
  code,
});
const litellm = (message: string, code: string) => ({ error: { message, type: 'None', param: 'None', code } });
const openrouter = (raw: unknown, provider_name = 'Mistral') => ({
  error: {
    code: 400,
    message: 'Provider returned error',
    metadata: { raw: typeof raw === 'string' ? raw : JSON.stringify(raw), provider_name },
  },
});
const apiKey = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' };
const perDay = {
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }],
};
const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '6s' };
const tooLong = 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).';
const plan = 'You exceeded your current quota, please check your plan and billing details.';

type Kind = 'request' | 'other model' | 'key' | 'wait' | 'again' | 'too long' | 'refusal';

function kindOf(failure: Awaited<ReturnType<typeof refused>>): Kind {
  const { code, retryable, isOfRequest, isRefusal } = failure;
  if (isRefusal) return 'refusal';
  if (code === 'model_context_too_long') return 'too long';
  if (code === 'model_key_missing' || code === 'model_key_rejected') return 'key';
  if (retryable) return code === 'model_rate_limited' ? 'wait' : 'again';
  return isOfRequest ? 'request' : 'other model';
}

describe('a refusal', () => {
  test.each<[Kind, string, number, unknown]>([
    ['too long', 'OpenAI', 400, openai('x', { code: 'context_length_exceeded', param: 'messages' })],
    ['too long', 'Google, in a list', 400, [google(400, 'INVALID_ARGUMENT', tooLong)]],
    ['too long', 'OpenRouter', 400, openrouter(openai('x', { code: 'context_length_exceeded' }))],
    ['too long', 'OpenRouter with a list', 400, openrouter([google(400, 'INVALID_ARGUMENT', tooLong)])],
    ['too long', 'Vertex', 413, anthropic('invalid_request_error', 'Prompt is too long')],
    [
      'too long',
      'Together',
      403,
      openai('Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.'),
    ],
    ['too long', 'Kimi', 400, openai('Invalid request: Input token length too long')],
    ['too long', 'Ollama', 500, { error: 'prompt too long; exceeded max context length by 12 tokens' }],
    ['too long', 'Cohere', 400, { message: 'too many tokens: total number of tokens in this prompt exceeds 128000' }],
    ['too long', 'z.ai', 400, { error: { code: '1261', message: 'Prompt exceeds max length' } }],
    [
      'too long',
      'vLLM, most of it input',
      400,
      openai(
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 7711 input tokens (1000 > 8192 - 7711).",
      ),
    ],
    [
      'too long',
      'OpenAI, one message',
      400,
      openai('x', { code: 'string_above_max_length', param: 'messages[1].content' }),
    ],
    ['too long', 'Azure, 2,048 messages', 400, openai('x', { code: 'array_above_max_length', param: 'messages' })],
    [
      'request',
      'a description of a tool',
      400,
      openai("Invalid 'tools[0].function.description': string too long. Expected maximum length 1024", {
        code: 'string_above_max_length',
        param: 'tools[0].function.description',
      }),
    ],
    [
      'request',
      'a name, in words of the context',
      400,
      litellm(
        "litellm.ContextWindowExceededError: {'error': {'message': \"Invalid 'tools[0].function.name': string too long.",
        '400',
      ),
    ],
    ['request', 'a key of the cache', 400, openai('x', { code: 'string_above_max_length', param: 'prompt_cache_key' })],
    ['request', 'too many tools', 400, openai('x', { code: 'array_above_max_length', param: 'tools' })],
    ['request', 'max_tokens', 400, openai('max_tokens is too large: 5000. This model supports at most 4096')],
    ['request', 'Cohere’s max tokens', 400, { message: 'max tokens must be less than 4096' }],
    ['request', 'Mistral', 400, mistral("Unexpected role 'user' after role 'tool'", 'invalid_request_message_order')],
    ['request', 'Mistral, a list', 422, mistral({ detail: [{ type: 'extra_forbidden' }] }, 'invalid_request_error')],
    ['request', 'LM Studio, zod', 400, [{ code: 'invalid_type', path: ['tools', 0, 'function'], message: 'Required' }]],
    ['request', 'llama.cpp', 500, { error: { code: 500, message: 'Jinja Exception: roles', type: 'server_error' } }],
    ['request', 'Alibaba', 400, openai('x', { code: 'invalid_parameter_error' })],
    ['wait', 'Bedrock in a gateway', 400, { message: 'Too many tokens, please wait before trying again.' }],
    ['wait', 'a gateway’s 403', 403, { message: 'API rate limit exceeded for this client' }],
    ['wait', 'Google, each minute', 429, [google(429, 'RESOURCE_EXHAUSTED', plan, [retryInfo])]],
    [
      'wait',
      'OpenRouter, credit that is reserved',
      402,
      { error: { code: 402, message: 'x', metadata: { limit_source: 'openrouter_in_flight_budget' } } },
    ],
    ['again', 'Groq, tools', 400, openai('Failed to call a function.', { code: 'tool_use_failed' })],
    ['again', 'Groq, JSON', 400, openai('Failed to validate JSON.', { code: 'json_validate_failed' })],
    ['again', 'Groq, output', 400, openai('Parsing failed.', { code: 'output_parse_failed' })],
    ['again', 'Anthropic, a conflict', 409, anthropic('conflict_error', 'x')],
    ['again', 'Bedrock, its model', 424, { message: 'x' }],
    ['again', 'too early', 425, ''],
    ['again', 'Groq, no capacity', 498, openai('x', { code: 'capacity_exceeded' })],
    ['again', 'nginx', 499, '<html>'],
    ['again', 'Cloudflare', 520, '<!DOCTYPE html>'],
    ['again', 'OpenAI, overloaded', 503, openai('x', { code: 'server_is_overloaded' })],
    ['again', 'a gateway’s time-out', 504, { error: { code: 'gateway_timeout', message: 'x' } }],
    ['other model', 'OpenAI', 429, openai('x', { type: 'insufficient_quota', code: 'credit_balance_exhausted' })],
    ['other model', 'OpenAI, a limit', 429, openai('x', { code: 'organization_spend_limit_exceeded' })],
    ['other model', 'Anthropic', 400, anthropic('invalid_request_error', 'Your credit balance is too low to access')],
    [
      'other model',
      'Anthropic, a limit of the account',
      400,
      anthropic('invalid_request_error', 'You have reached your specified API usage limits.'),
    ],
    ['other model', 'Anthropic, 402', 402, anthropic('billing_error', 'x')],
    ['other model', 'Google, each day', 429, [google(429, 'RESOURCE_EXHAUSTED', plan, [perDay, retryInfo])]],
    ['other model', 'Google, a country', 400, google(400, 'FAILED_PRECONDITION', 'User location is not supported')],
    ['other model', 'Moonshot', 403, openai('Your account is suspended: insufficient balance')],
    ['other model', 'z.ai', 429, { error: { code: '1113', message: 'Insufficient balance or no resource package.' } }],
    ['other model', 'Fireworks', 412, { error: { object: 'error', message: 'Account suspended' } }],
    ['other model', 'LiteLLM', 400, { error: { message: 'x', type: 'budget_exceeded', param: 'None', code: '400' } }],
    [
      'other model',
      'OpenAI, larger than a minute allows',
      429,
      openai('Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.', {
        type: 'tokens',
        code: 'rate_limit_exceeded',
      }),
    ],
    ['key', 'Google, in a list', 400, [google(400, 'INVALID_ARGUMENT', 'API key not valid.', [apiKey])]],
    ['key', 'xAI', 400, { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***.' }],
    ['key', 'Kimi', 401, openai('x', { type: 'invalid_authentication_error' })],
    ['key', 'Bedrock', 403, { message: 'x', type: 'AccessDeniedException' }],
    [
      'refusal',
      'Azure',
      400,
      openai('x', { code: 'content_filter', innererror: { code: 'ResponsibleAIPolicyViolation' } }),
    ],
    ['refusal', 'OpenAI', 400, openai('x', { code: 'invalid_prompt' })],
    ['refusal', 'OpenAI, an image', 400, openai('x', { code: 'image_content_policy_violation' })],
    ['refusal', 'Moonshot', 400, openai('x', { type: 'content_filter' })],
    ['refusal', 'Anthropic', 400, anthropic('invalid_request_error', 'Output blocked by content filtering policy')],
    ['refusal', 'Alibaba', 400, openai('x', { code: 'data_inspection_failed' })],
    [
      'refusal',
      'OpenRouter',
      403,
      {
        error: {
          code: 403,
          message: 'Your input was flagged',
          metadata: { reasons: ['violence'], flagged_input: 'm' },
        },
      },
    ],
    ['refusal', 'OpenRouter of Azure', 400, openrouter(openai('x', { code: 'content_filter' }), 'Azure')],
    ['other model', 'OpenRouter, another 403', 403, { error: { code: 403, message: 'This model is not for you' } }],
  ])('is of the kind "%s" (%s)', async (kind, _server, status, body) => {
    expect(kindOf(await refused(status, body))).toBe(kind);
  });

  test('of Bedrock names its kind in a header', async () => {
    const headers = { 'x-amzn-errortype': 'ThrottlingException:http://internal.amazon.com/' };
    const failure = await refused(400, { message: 'x' }, headers);
    expect([kindOf(failure), failure.message]).toEqual([
      'wait',
      'The model’s provider responded with HTTP 400 (ThrottlingException)',
    ]);
  });

  test.each<[shown: string, body: unknown]>([
    [
      '(invalid_function_parameters, tools[5].function.parameters)',
      openai('x', { code: 'invalid_function_parameters', param: 'tools[5].function.parameters' }),
    ],
    [
      '(invalid_request_error, messages.3.content.0)',
      anthropic('invalid_request_error', 'messages.3.content.0: Invalid signature in thinking block'),
    ],
    [
      '(invalid_request_error, tools.73.custom.input_schema)',
      anthropic('invalid_request_error', 'tools.73.custom.input_schema: JSON schema is invalid.'),
    ],
    [
      '(invalid_request_error, messages.1)',
      openai("'messages.1' : for 'role:assistant' the following must be satisfied"),
    ],
    [
      '(extra_forbidden, messages.0.assistant.reasoning_content)',
      mistral(
        { detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0, 'assistant', 'reasoning_content'] }] },
        'invalid_request_error',
      ),
    ],
    [
      '(invalid_type, tools.0.function)',
      [{ code: 'invalid_type', path: ['tools', 0, 'function'], message: 'Required' }],
    ],
    [
      '(INVALID_ARGUMENT, tools[0].function_declarations[12].parameters)',
      google(400, 'INVALID_ARGUMENT', 'x', [
        {
          fieldViolations: [{ field: 'GenerateContentRequest.tools[0].function_declarations[12].parameters' }],
        },
      ]),
    ],
    ['(invalid_request_error)', openrouter(mistral('x', 'invalid_request_error', '3230'))],
    ['', litellm('x', '400')],
    [
      '(invalid_request_error, tools.0.custom.input_schema)',
      litellm(
        `litellm.BadRequestError: ${JSON.stringify(anthropic('invalid_request_error', 'tools.0.custom.input_schema: x'))}`,
        '400',
      ),
    ],
    ['', { code: 'Client specified an invalid argument', error: 'Empty content' }],
    // A name of the request, a sentence, and what is no path.
    ['(tools[0].function.parameters)', { error: { param: 'tools[0].function.parameters.words', message: 'x' } }],
    ['', { error: { param: 'my own words', message: 'x' } }],
    ['', { error: { param: 'words', code: 'words', message: 'x' } }],
    ['', { error: { param: '[0]', message: 'x' } }],
    ['', { error: { param: { own: 1 }, code: ['own'], message: 7 } }],
  ])('shows %s', async (shown, body) => {
    const { message, param } = await refused(400, body);
    expect(message).toBe(`The model’s provider responded with HTTP 400${shown === '' ? '' : ` ${shown}`}`);
    expect(param ?? '').toBe(
      shown.includes('tools') || shown.includes('messages') ? shown.slice(1, -1).split(', ').at(-1) : '',
    );
  });
});

const groq =
  'Request too large for model `llama-3.3-70b` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9876, please reduce your message size and try again.';
const nginx = '<html><head><title>413 Request Entity Too Large</title></head></html>';

test.each<[withImage: Kind, without: Kind, what: string, status: number, body: unknown]>([
  ['request', 'too long', 'a sentence', 413, anthropic('request_too_large', 'Image too large')],
  ['request', 'too long', 'a code', 413, openai('x', { code: 'image_too_large' })],
  ['request', 'too long', 'a string', 413, { error: 'The picture is larger than 10 MiB' }],
  ['request', 'too long', 'a field', 400, openai('x', { code: 'request_too_large', type: 'invalid_image' })],
  ['too long', 'too long', 'all of it', 413, anthropic('request_too_large', 'Request exceeds the maximum size')],
  ['too long', 'too long', 'a page', 413, nginx],
  ['too long', 'too long', 'nothing', 413, ''],
  ['too long', 'too long', 'tokens', 413, anthropic('invalid_request_error', 'Prompt is too long, images included')],
  ['too long', 'too long', 'another kind', 413, openai('The document is too large')],
  ['other model', 'other model', 'Groq', 413, openai(groq, { type: 'tokens', code: 'rate_limit_exceeded' })],
  ['wait', 'wait', 'a rate', 413, openai('Rate limit reached', { type: 'tokens', code: 'rate_limit_exceeded' })],
  [
    'request',
    'request',
    'the length of its data',
    400,
    openai('x', { code: 'string_above_max_length', param: 'messages[1].content[1].image_url.url' }),
  ],
])('"%s" with an image in the request, otherwise "%s": too large is %s', async (having, lacking, _, status, body) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const kinds = [withImage, sent].map(async (of) =>
    kindOf((await refusalOf(new Response(text, { status }), of, clock)).failure),
  );
  expect(await Promise.all(kinds)).toEqual([having, lacking]);
});

test.each<[withImage: Kind, without: Kind, event: unknown]>([
  ['request', 'again', { error: 'Could not process image' }],
  ['request', 'again', { error: { message: 'Failed to decode the picture' } }],
  ['again', 'again', { error: { message: 'The image service is temporarily unavailable' } }],
  ['wait', 'wait', { error: { message: 'Too many requests with images' } }],
  ['request', 'too long', { error: { message: 'Image too large', code: 413 } }],
])('"%s" with an image in the request, otherwise "%s": %j after status 200', (having, lacking, event) => {
  const kinds = [withImage, sent].map((of) => kindOf(errorAfterOk(errorInEvent(event)!, of, new Headers(), clock)));
  expect(kinds).toEqual([having, lacking]);
});

test.each<[boolean, string]>([
  [true, 'The `reasoning_content` in the thinking mode must be passed back to the API.'],
  [true, 'Missing `reasoning_content` field in the assistant message at message index 1.'],
  [true, 'thinking is enabled but reasoning_content is missing in assistant tool call message at index 2'],
  [true, "'reasoning_content' is a required property"],
  [true, 'Param Incorrect: reasoning_content cannot be empty'],
  [false, "property 'reasoning_content' is unsupported"],
  [false, 'Missing `tool_call_id` field in the tool message at message index 2.'],
])('%j: the server wants the reasoning of earlier responses if it says "%s"', async (wants, message) => {
  expect(await refused(400, openai(message))).toMatchObject({ wantsReasoning: wants });
});

describe('an error after status 200', () => {
  test.each<[Kind, string, unknown]>([
    ['wait', 'a gateway', { error: { message: 'Rate limit exceeded', code: 429 } }],
    ['wait', 'LiteLLM', litellm('x', '429')],
    ['wait', 'a string', { error: 'Too many requests' }],
    ['wait', 'Google', google(429, 'RESOURCE_EXHAUSTED', 'x')],
    [
      'again',
      'OpenRouter',
      { id: 'x', error: { code: 502, message: 'x' }, choices: [{ delta: {}, finish_reason: 'error' }] },
    ],
    ['again', 'OpenRouter, in a choice', { choices: [{ delta: {}, error: { code: 504, message: 'x' } }] }],
    ['again', 'Anthropic', anthropic('overloaded_error', 'Overloaded')],
    ['again', 'anything', { error: {}, type: 'error' }],
    ['again', 'vLLM', { object: 'error', message: 'x', type: 'InternalServerError', param: null, code: 500 }],
    ['request', 'vLLM', { object: 'error', message: 'x', type: 'BadRequestError', param: null, code: 400 }],
    ['request', 'OpenAI', openai('x')],
    ['too long', 'vLLM', { object: 'error', message: "This model's maximum context length is 9", code: 400 }],
    ['too long', 'LM Studio', { error: 'the number is greater than the context length' }],
    ['refusal', 'OpenAI', { type: 'response.failed', response: { error: { code: 'invalid_prompt', message: 'x' } } }],
    ...['invalid_base64_image', 'image_too_large', 'invalid_image'].map((code): [Kind, string, unknown] => [
      'request',
      `OpenAI, ${code}`,
      { type: 'response.failed', response: { error: { code, message: 'x' } } },
    ]),
    ['other model', 'MiniMax', { choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }],
    ['wait', 'MiniMax', { choices: null, base_resp: { status_code: 1002, status_msg: 'rate limit exceeded(RPM)' } }],
    ['again', 'MiniMax', { choices: null, base_resp: { status_code: 1000, status_msg: 'unknown error' } }],
    [
      'other model',
      'OpenAI',
      { type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'x' } },
    ],
    ['key', 'Google', google(403, 'PERMISSION_DENIED', 'x')],
    ['again', 'Cohere', { message: 'internal error' }],
    ['wait', 'Groq', { error: { message: 'x', status_code: 429 } }],
    ['key', 'a gateway', { code: 401, msg: 'x' }],
    ['request', 'FastAPI', { detail: [{ loc: ['body', 'messages'], msg: 'x', type: 'invalid_argument' }] }],
  ])('is of the kind "%s" (%s)', (kind, _server, event) => {
    expect(kindOf(streamed(event))).toBe(kind);
  });

  test.each([
    { choices: [{ delta: { content: 'x' } }], error: null },
    { choices: [{ delta: { content: 'x' } }], base_resp: { status_code: 0, status_msg: '' } },
    { type: 'message_start', message: { id: 'm' } },
    { type: 'response.created', response: { error: null } },
    { candidates: [], error: {} },
    { choices: [{ delta: {} }], error: { code: 0, message: '', type: null } },
    { usage: {} },
    null,
    'error',
  ])('is not %j', (event) => {
    expect(errorInEvent(event)).toBeUndefined();
  });

  test('shows its status, its code and what it is about', () => {
    const event = {
      error: { code: 429, message: 'x', metadata: { raw: JSON.stringify(openai('x', { code: 'slow_down' })) } },
    };
    expect(streamed(event)).toMatchObject({
      httpStatus: 429,
      message: 'The model ended its response with an error of status 429 (slow_down)',
    });
  });
});

describe('the time to wait', () => {
  const inMs = (seconds: number) => String(clock.now().getTime() + seconds * 1000);

  test.each<[ms: number | undefined, headers: Record<string, string>, body?: unknown]>([
    [2000, { 'retry-after': '2' }],
    [30_000, { 'retry-after': 'Fri, 02 Jan 2026 03:04:35 GMT' }],
    [9000, { 'retry-after': inMs(9) }],
    [150, { 'retry-after-ms': '150', 'retry-after': '9' }],
    [6000, {}, [google(429, 'RESOURCE_EXHAUSTED', 'x', [retryInfo])]],
    [
      60_000,
      {
        'x-ratelimit-reset-requests': '1m0s',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-tokens': '6ms',
      },
    ],
    [6, { 'x-ratelimit-reset-requests': '1m0s', 'x-ratelimit-reset-tokens': '6ms' }],
    [1570, { 'x-ratelimit-reset-tokens': '1.57s' }],
    [7000, { 'anthropic-ratelimit-requests-reset': '2026-01-02T03:04:12Z' }],
    [
      9000,
      {
        'anthropic-ratelimit-requests-reset': '2026-01-02T03:04:06Z',
        'anthropic-ratelimit-input-tokens-reset': '2026-01-02T03:04:14Z',
        'anthropic-ratelimit-input-tokens-remaining': '0',
      },
    ],
    [5000, { 'x-ratelimit-reset': inMs(5) }],
    [5000, { 'x-ratelimit-reset': inMs(5).slice(0, -3) }],
    [5000, { 'x-ratelimit-reset': '5' }],
    [8000, {}, { error: { code: 429, message: 'x', metadata: { headers: { 'X-RateLimit-Reset': inMs(8) } } } }],
    [86_400_000, { 'retry-after': '9999999' }],
    [0, { 'x-ratelimit-reset': inMs(-5) }],
    [undefined, { 'x-ratelimit-reset': 'soon', 'x-ratelimit-reset-tokens': '5 apples' }],
    [undefined, {}, { error: { details: [{ retryDelay: 'soon' }, null], metadata: { headers: 'x' }, message: 'x' } }],
  ])('is %s ms for %j', async (ms, headers, body = openai('x')) => {
    expect((await refused(429, body, headers)).retryAfterMs).toBe(ms);
  });

  test('is not that of a limit if the failure is not of a rate', async () => {
    const headers = { 'x-ratelimit-reset-requests': '8h', 'x-ratelimit-remaining-requests': '99' };
    expect((await refused(503, '', headers)).retryAfterMs).toBeUndefined();
    expect((await refused(503, '', { ...headers, 'retry-after': '2' })).retryAfterMs).toBe(2000);
  });
});
