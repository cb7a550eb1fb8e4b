// What the servers of models refuse in the messages of a request, and how they say it: the rules that their makers document or that
// their code and templates contain. A mock that accepts everything proves nothing about them.
import { converseFilesRefusal } from './converse-files.ts';

/** A response of a server that refuses a request. */
export interface Refusal {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
}

type Fields = Record<string, unknown>;
interface ChatMessage extends Fields {
  role: string;
  content?: unknown;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

export interface ChatBody extends Fields {
  model: string;
  messages: ChatMessage[];
  tools?: { function: { name: string } }[];
}

export type ChatServer = keyof typeof chatServers;

/** Undefined: the server accepts the messages. */
export function chatRefusal(server: ChatServer, body: ChatBody): Refusal | undefined {
  const { isRefused, refusal } = chatServers[server];
  const why = isRefused(body);
  return why === undefined ? undefined : refusal(why);
}

type Rule = (body: ChatBody) => string | undefined;

const openAiError = (message: string): Refusal => ({
  status: 400,
  body: { error: { message, type: 'invalid_request_error', param: 'messages', code: 'invalid_value' } },
});
const vllmError = (message: string): Refusal => ({
  status: 400,
  body: { error: { message, type: 'BadRequestError', param: null, code: 400 } },
});
const mistralError = (message: string): Refusal => ({
  status: /Extra inputs/.test(message) ? 422 : 400,
  body: /Extra inputs/.test(message)
    ? {
        object: 'error',
        message: {
          detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0, 'assistant', 'reasoning'], msg: message }],
        },
        type: 'invalid_request_error',
        param: null,
        code: null,
      }
    : { object: 'error', message, type: 'invalid_request_message_order', param: null, code: '3230' },
});

const all =
  (...rules: Rule[]): Rule =>
  (body) => {
    for (const rule of rules) {
      const why = rule(body);
      if (why !== undefined) return why;
    }
    return undefined;
  };

/** The first message for which the function has something to say. */
const each =
  (rule: (message: ChatMessage, at: number, messages: ChatMessage[]) => string | undefined | false): Rule =>
  ({ messages }) => {
    for (const [at, message] of messages.entries()) {
      const why = rule(message, at, messages);
      if (why) return why;
    }
    return undefined;
  };

const callsOf = ({ tool_calls: calls }: ChatMessage) => calls ?? [];
const textsOf = ({ content }: ChatMessage): string[] =>
  typeof content === 'string'
    ? [content]
    : Array.isArray(content)
      ? content.flatMap((part: Fields) => (part.type === 'text' ? [String(part.text)] : []))
      : [];

/** The schema of chat completions, which all of them share. */
const schema = all(
  ({ messages }) => (messages.length === 0 ? 'messages must not be empty' : undefined),
  each(({ role }) => !['system', 'user', 'assistant', 'tool'].includes(role) && `Invalid value: '${role}'`),
  each(
    (message) =>
      message.role === 'assistant' &&
      callsOf(message).length === 0 &&
      typeof message.content !== 'string' &&
      'either content or tool_calls is required',
  ),
  each((message) => message.role === 'assistant' && message.tool_calls?.length === 0 && 'tool_calls: [] is too short'),
  each(
    ({ role, content }) =>
      (role === 'user' || role === 'tool' || role === 'system') &&
      !(typeof content === 'string' || (Array.isArray(content) && content.length > 0)) &&
      `content of ${role} is required`,
  ),
  // A call without a result, a result without a call, a result that is somewhere else.
  ({ messages }) => {
    let open: string[] = [];
    for (const message of messages) {
      if (message.role === 'tool') {
        if (!open.includes(message.tool_call_id ?? ''))
          return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
        open = open.filter((id) => id !== message.tool_call_id);
      } else {
        if (open.length > 0) return `tool_call_ids did not have response messages: ${open}`;
        open = callsOf(message).map(({ id }) => id);
      }
    }
    return open.length > 0 ? `tool_call_ids did not have response messages: ${open}` : undefined;
  },
);

const idsMatch = (pattern: RegExp): Rule =>
  each((message) => {
    const odd = callsOf(message).find(({ id }) => !pattern.test(id));
    return odd && `Tool call id was ${odd.id} but must match ${pattern}`;
  });
const uniqueIds: Rule = ({ messages }) => {
  const ids = messages.flatMap((message) => callsOf(message).map(({ id }) => id));
  return new Set(ids).size === ids.length ? undefined : 'ids of tool calls must be unique';
};
const namesMatch = (pattern: RegExp): Rule =>
  each((message) => {
    const odd = callsOf(message).find(({ function: { name } }) => !pattern.test(name));
    return odd && `messages: string does not match pattern ${pattern}: ${odd.function.name}`;
  });
const argumentsAreObjects: Rule = each((message) => {
  const isObject = (text: string) => {
    try {
      const value = JSON.parse(text);
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    } catch {
      return false;
    }
  };
  return callsOf(message).some((call) => !isObject(call.function.arguments)) && 'arguments must be a JSON object';
});
const systemFirst: Rule = each(
  ({ role, content }, at) =>
    role === 'system' &&
    (at > 0 || typeof content !== 'string' || content.trim() === '') &&
    'System message must be at the beginning.',
);
const lastIsNotAssistant: Rule = ({ messages }) =>
  messages.at(-1)?.role === 'assistant' ? 'Expected last role User or Tool (or Assistant with prefix True)' : undefined;
const noEmptyText: Rule = each(
  (message, at) =>
    !(message.role === 'assistant' && callsOf(message).length > 0) &&
    textsOf(message).some((text) => text.trim() === '') &&
    `the message at position ${at} with role '${message.role}' must not be empty`,
);
const contentIsText: Rule = each(
  ({ role, content }) => role !== 'user' && typeof content !== 'string' && 'Invalid content type',
);
const fields =
  (allowed: readonly string[]): Rule =>
  (body) =>
    each((message) => {
      const odd = Object.keys(message).find(
        (name) => !['role', 'content', 'tool_calls', 'tool_call_id', 'name', ...allowed].includes(name),
      );
      return odd && `Extra inputs are not permitted: property '${odd}' is unsupported`;
    })(body);
/** User and assistant in turn; calls and results count for nothing. */
const alternation: Rule = ({ messages }) => {
  const roles = messages
    .filter((message) => message.role !== 'system' && message.role !== 'tool' && callsOf(message).length === 0)
    .map(({ role }) => role);
  return roles.some((role, at) => role !== (at % 2 === 0 ? 'user' : 'assistant'))
    ? 'Conversation roles must alternate user/assistant/user/assistant/...'
    : undefined;
};
/** The check of mistral-common. */
const mistralOrder: Rule = each(({ role }, at, messages) => {
  const before = messages[at - 1]?.role;
  const allowed: Record<string, string[]> = {
    system: ['user', 'assistant', 'system'],
    user: ['assistant', 'system', 'user'],
    assistant: ['assistant', 'user', 'tool'],
    tool: ['assistant', 'tool'],
  };
  return before !== undefined && !allowed[before]!.includes(role) && `Unexpected role '${role}' after role '${before}'`;
});
const reasoningOfCalls: Rule = each(
  (message) =>
    message.role === 'assistant' &&
    callsOf(message).length > 0 &&
    typeof message.reasoning_content !== 'string' &&
    'The reasoning_content in the thinking mode must be passed back to the API.',
);
const bodyFields =
  (allowed: readonly string[]): Rule =>
  (body) => {
    const odd = Object.keys(body).find((name) => !allowed.includes(name));
    return odd && `Extra inputs are not permitted, field: '${odd}'`;
  };
/** Its translation to other formats needs them. */
const toolsOfCalls: Rule = ({ messages, tools }) =>
  tools === undefined && messages.some((message) => callsOf(message).length > 0)
    ? 'UnsupportedParamsError: tool calls in messages without `tools=` param'
    : undefined;
const notStrict: Rule = ({ tools = [], ...body }) =>
  'store' in body || tools.some(({ function: tool }) => 'strict' in tool)
    ? 'Input validation error: unknown field'
    : undefined;
const CHAT_FIELDS = ['model', 'messages', 'tools', 'tool_choice', 'stream', 'stream_options', 'max_tokens'];
const MISTRAL_ID = /^[a-zA-Z0-9]{9}$/;
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const REASONING = ['reasoning', 'reasoning_content', 'reasoning_details'];
const common = all(schema, uniqueIds, argumentsAreObjects, lastIsNotAssistant);

export const chatServers = {
  openai: { isRefused: all(common, fields([]), idsMatch(/^.{1,40}$/), namesMatch(NAME)), refusal: openAiError },
  'azure chat': { isRefused: all(common, fields([]), idsMatch(/^.{1,40}$/), namesMatch(NAME)), refusal: openAiError },
  mistral: {
    isRefused: all(common, fields([]), mistralOrder, idsMatch(MISTRAL_ID), namesMatch(NAME), noEmptyText),
    refusal: mistralError,
  },
  groq: {
    isRefused: all(common, fields(['reasoning']), systemFirst, namesMatch(NAME)),
    refusal: (message) => ({ status: 400, body: { error: { message, type: 'invalid_request_error' } } }),
  },
  xai: {
    isRefused: all(common, noEmptyText, namesMatch(NAME)),
    refusal: (error) => ({ status: 400, body: { code: 'Client specified an invalid argument', error } }),
  },
  deepseek: { isRefused: all(common, fields(REASONING), reasoningOfCalls, namesMatch(NAME)), refusal: openAiError },
  moonshot: {
    isRefused: all(
      common,
      fields(REASONING),
      reasoningOfCalls,
      noEmptyText,
      namesMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/),
    ),
    refusal: (message) => ({ status: 400, body: { error: { message, type: 'invalid_request_error' } } }),
  },
  openrouter: {
    isRefused: all(common, mistralOrder, idsMatch(MISTRAL_ID), namesMatch(NAME)),
    refusal: (raw) => ({
      status: 400,
      body: {
        error: {
          code: 400,
          message: 'Provider returned error',
          metadata: { raw: JSON.stringify(openAiError(raw).body), provider_name: 'Mistral' },
        },
      },
    }),
  },
  together: {
    isRefused: all(common, notStrict, fields(REASONING), namesMatch(NAME)),
    refusal: (message) => ({
      status: 400,
      body: { error: { message, type: 'invalid_request_error', param: null, code: null } },
    }),
  },
  fireworks: {
    isRefused: all(common, bodyFields(CHAT_FIELDS), fields(REASONING), namesMatch(NAME)),
    refusal: (message) => ({
      status: 400,
      body: { error: { object: 'error', type: 'invalid_request_error', code: 'invalid_request_error', message } },
    }),
  },
  // With Claude behind it.
  litellm: {
    isRefused: all(common, toolsOfCalls, noEmptyText, idsMatch(/^[a-zA-Z0-9_-]{1,64}$/), namesMatch(NAME)),
    refusal: (message) => ({
      status: 400,
      body: { error: { message: `litellm.BadRequestError: ${message}`, type: 'None', param: 'None', code: '400' } },
    }),
  },
  'vllm with Mistral’s template': {
    isRefused: all(common, alternation, mistralOrder, systemFirst, idsMatch(MISTRAL_ID), namesMatch(NAME)),
    refusal: vllmError,
  },
  'vllm with Gemma’s template': { isRefused: all(common, alternation, systemFirst, contentIsText), refusal: vllmError },
  'vllm with Qwen’s template': { isRefused: all(common, systemFirst, contentIsText), refusal: vllmError },
  'vllm with Llama’s template': {
    isRefused: all(
      common,
      systemFirst,
      each((message) => callsOf(message).length > 1 && 'This model only supports single tool-calls at once!'),
    ),
    refusal: vllmError,
  },
  ollama: {
    isRefused: all(common, systemFirst, contentIsText, noEmptyText),
    refusal: (error) => ({ status: 400, body: { error } }),
  },
  'lm-studio': {
    isRefused: all(common, noEmptyText, systemFirst),
    refusal: (error) => ({ status: 400, body: { error } }),
  },
  'llama.cpp': {
    isRefused: all(common, systemFirst, contentIsText),
    refusal: (message) => ({
      status: 500,
      body: { error: { code: 500, message: `Jinja Exception: ${message}`, type: 'server_error' } },
    }),
  },
} satisfies Record<string, { isRefused: Rule; refusal(message: string): Refusal }>;

// ── OpenAI’s Responses ────────────────────────────────────────────────────────────────────────────────────────────────

export function responsesRefusal({ input }: { input: Fields[] }): Refusal | undefined {
  const refuse = (message: string): Refusal => ({
    status: 400,
    body: { error: { message, type: 'invalid_request_error', param: 'input', code: null } },
  });
  const ids = (type: string) => input.filter((item) => item.type === type).map((item) => String(item.call_id));
  const [calls, outputs] = [ids('function_call'), ids('function_call_output')];
  if (new Set(calls).size < calls.length) return refuse('Duplicate item found.');
  if (calls.some((id) => !/^.{1,64}$/.test(id))) return refuse('Expected a string with maximum length 64');
  const open = calls.find((id) => !outputs.includes(id));
  if (open !== undefined) return refuse(`No tool output found for function call ${open}.`);
  const extra = outputs.find((id) => !calls.includes(id));
  if (extra !== undefined) return refuse(`No tool call found for function call output with call_id ${extra}.`);
  for (const [at, item] of input.entries()) {
    if (item.type === 'function_call' && !NAME.test(String(item.name))) return refuse('string does not match pattern');
    const next = input[at + 1];
    if (
      item.type === 'reasoning' &&
      (next === undefined || next.role === 'user' || next.type === 'function_call_output')
    )
      return refuse(`Item '${item.id}' of type 'reasoning' was provided without its required following item.`);
    if ('role' in item && (item.content === '' || (Array.isArray(item.content) && item.content.length === 0)))
      return refuse(`Missing required parameter: 'input[${at}].content'.`);
  }
  return undefined;
}

// ── Anthropic’s Messages ──────────────────────────────────────────────────────────────────────────────────────────────

interface Block extends Fields {
  type: string;
}
export interface AnthropicBody extends Fields {
  system?: Block[];
  messages: { role: 'user' | 'assistant'; content: Block[] }[];
  thinking?: { type: string };
}

export function anthropicRefusal({ system = [], messages, thinking }: AnthropicBody): Refusal | undefined {
  const refuse = (message: string): Refusal => ({
    status: 400,
    body: { type: 'error', error: { type: 'invalid_request_error', message }, request_id: 'req_1' },
  });
  const isBlank = (block: Block) => block.type === 'text' && String(block.text).trim() === '';
  if (system.some(isBlank)) return refuse('system: text content blocks must contain non-whitespace text');
  if (messages[0]?.role !== 'user') return refuse('messages: first message must use the "user" role');
  if (messages.at(-1)!.role === 'assistant') return refuse('This model does not support assistant message prefill.');
  const ids = messages.flatMap(({ content }) =>
    content.flatMap((block) => (block.type === 'tool_use' ? [String(block.id)] : [])),
  );
  if (new Set(ids).size < ids.length) return refuse('messages: `tool_use` ids must be unique');
  for (const [at, { role, content }] of messages.entries()) {
    if (content.length === 0) return refuse(`messages.${at}: all messages must have non-empty content`);
    for (const [place, block] of content.entries()) {
      const where = `messages.${at}.content.${place}`;
      if (isBlank(block)) return refuse(`${where}.text: text content blocks must contain non-whitespace text`);
      if (block.type === 'tool_use' && !/^[a-zA-Z0-9_-]{1,64}$/.test(String(block.id)))
        return refuse(`${where}.tool_use.id: String should match pattern`);
      if (block.type === 'tool_use' && !/^[a-zA-Z0-9_-]{1,128}$/.test(String(block.name)))
        return refuse(`${where}.tool_use.name: String should match pattern`);
      const isObject = typeof block.input === 'object' && block.input !== null && !Array.isArray(block.input);
      if (block.type === 'tool_use' && !isObject)
        return refuse(`${where}.tool_use.input: Input should be a valid dictionary`);
    }
    const uses = content.filter(({ type }) => type === 'tool_use').map(({ id }) => id);
    const next = messages[at + 1];
    if (role === 'assistant' && uses.length > 0) {
      const first = next?.content.slice(0, uses.length) ?? [];
      const results = first.filter(({ type }) => type === 'tool_result').map((block) => block.tool_use_id);
      const missing = uses.find((id) => !results.includes(id));
      if (missing)
        return refuse(
          `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing}`,
        );
    }
    const before = messages[at - 1]?.content.filter(({ type }) => type === 'tool_use').map(({ id }) => id) ?? [];
    const stray = content.find((block) => block.type === 'tool_result' && !before.includes(block.tool_use_id));
    if (stray)
      return refuse(
        `messages.${at}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray.tool_use_id}`,
      );
  }
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const inLoop = last >= 0 && messages[last + 1]!.content.some(({ type }) => type === 'tool_result');
  const isOn = thinking !== undefined && thinking.type !== 'disabled';
  const [first] = messages[last]?.content ?? [];
  if (isOn && inLoop && !/thinking/.test(first!.type))
    return refuse(
      `messages.${last}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first!.type}\`.`,
    );
  return undefined;
}

// ── Google’s generateContent ──────────────────────────────────────────────────────────────────────────────────────────

export interface GoogleBody extends Fields {
  contents: { role: 'user' | 'model'; parts: Fields[] }[];
}

export function googleRefusal({ contents }: GoogleBody): Refusal | undefined {
  const refuse = (message: string): Refusal => ({
    status: 400,
    body: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } },
  });
  if (contents[0]?.role !== 'user') return refuse('Please ensure that multiturn requests begin with a user turn');
  if (contents.at(-1)!.role === 'model') return refuse('Requests ending with a model turn are not supported.');
  const turn = contents.findLastIndex(({ role, parts }) => role === 'user' && parts.some((part) => 'text' in part));
  for (const [at, { role, parts }] of contents.entries()) {
    if (parts.length === 0) return refuse(`contents[${at}].parts: must not be empty`);
    const isEmpty = (part: Fields) => 'text' in part && String(part.text) === '' && !('thoughtSignature' in part);
    if (parts.some(isEmpty)) return refuse('Unable to submit request because it has an empty text parameter.');
    const calls = parts.filter((part) => 'functionCall' in part);
    const results = contents[at + 1]?.parts.filter((part) => 'functionResponse' in part) ?? [];
    if (role === 'model' && calls.length !== results.length)
      return refuse(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    if (results.length > 0 && results.length < contents[at + 1]!.parts.length)
      return refuse('Function responses and other parts can’t be in one content.');
    for (const [index, call] of calls.entries()) {
      const { name } = call.functionCall as { name: string };
      if (!/^[a-zA-Z_][\w.:-]{0,127}$/.test(name)) return refuse(`Invalid function name: ${name}`);
      if (index === 0 && at > turn && !('thoughtSignature' in call))
        return refuse('Function call is missing a thought_signature in functionCall parts.');
    }
  }
  return undefined;
}

// ── Bedrock’s Converse ────────────────────────────────────────────────────────────────────────────────────────────────

export interface ConverseBody extends Fields {
  system?: Fields[];
  messages: { role: 'user' | 'assistant'; content: Fields[] }[];
  toolConfig?: { tools: unknown[] };
}

const CONVERSE_FIELDS = [
  'system',
  'messages',
  'inferenceConfig',
  'toolConfig',
  'additionalModelRequestFields',
  'additionalModelResponseFieldPaths',
];

export function bedrockError(message: string, type = 'ValidationException', status = 400): Refusal {
  const header = `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`;
  return { status, headers: { 'x-amzn-errortype': header }, body: { message } };
}

/** `model`: the rules of Claude are its own. */
export function converseRefusal(body: ConverseBody, model: string): Refusal | undefined {
  const { system = [], messages, toolConfig } = body;
  const unknown = Object.keys(body).find((name) => !CONVERSE_FIELDS.includes(name));
  if (unknown) return bedrockError(`Malformed input request: #: extraneous key [${unknown}] is not permitted`);
  if (system.some((block) => 'text' in block && String(block.text).trim() === ''))
    return bedrockError('The text field in the ContentBlock object at system.0 is blank. Add text to the text field.');
  if (messages[0]?.role !== 'user') return bedrockError('A conversation must start with a user message.');
  if (messages.at(-1)!.role === 'assistant')
    return bedrockError(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    );
  const usesIn = (at: number) =>
    (messages[at]?.content ?? []).flatMap((block) => (block.toolUse ? [block.toolUse as Fields] : []));
  const ids = messages.flatMap((_, at) => usesIn(at).map(({ toolUseId }) => String(toolUseId)));
  if (new Set(ids).size < ids.length) return bedrockError('`tool_use` ids must be unique');
  const filesWhy = converseFilesRefusal(messages, model);
  if (filesWhy !== undefined) return bedrockError(filesWhy);
  for (const [at, { role, content }] of messages.entries()) {
    if (role === messages[at - 1]?.role) return bedrockError('roles must alternate between "user" and "assistant"');
    if (content.length === 0)
      return bedrockError(`The content field in the Message object at messages.${at} is empty.`);
    const results = content.flatMap((block) => (block.toolResult ? [block.toolResult as Fields] : []));
    const why = converseContentRefusal(content, { at, role, model });
    if (why !== undefined) return bedrockError(why);
    const before = usesIn(at - 1).map(({ toolUseId }) => toolUseId);
    const answered = results.map(({ toolUseId }) => toolUseId);
    if (before.some((id) => !answered.includes(id)) || answered.some((id) => !before.includes(id)))
      return bedrockError(
        `The number of toolResult blocks at messages.${at}.content exceeds the number of toolUse blocks of previous turn.`,
      );
    if ((results.length > 0 || usesIn(at).length > 0) && toolConfig === undefined)
      return bedrockError('The toolConfig field must be defined when using toolUse and toolResult content blocks.');
  }
  return undefined;
}

function converseContentRefusal(
  content: Fields[],
  { at, role, model }: { at: number; role: string; model: string },
): string | undefined {
  const isClaude = model.includes('anthropic');
  const kinds = content.map((block) => Object.keys(block)[0]);
  const known = role === 'user' ? ['text', 'image', 'document', 'toolResult'] : ['text', 'toolUse', 'reasoningContent'];
  if (isClaude) known.push('cachePoint');
  const odd = kinds.find((kind) => !known.includes(kind!));
  if (odd)
    return `Malformed input request: messages.${at}.content: ${odd} is not permitted in a message of the ${role}`;
  if (!isClaude && kinds.includes('toolResult') && kinds.some((kind) => kind !== 'toolResult'))
    return 'Conversation blocks and tool result blocks cannot be provided in the same turn.';
  if (kinds.includes('document') && !kinds.includes('text')) return 'A document needs a text block beside it.';
  for (const [place, { text, toolUse, toolResult, document, reasoningContent }] of content.entries()) {
    const where = `messages.${at}.content.${place}`;
    if (typeof text === 'string' && text.trim() === '')
      return `The text field in the ContentBlock object at ${where} is blank. Add text to the text field, and try again.`;
    const { toolUseId, name, input } = (toolUse ?? {}) as Fields;
    if (toolUse !== undefined) {
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(toolUseId)))
        return `Value at '${where}.toolUse.toolUseId' failed to satisfy constraint`;
      if (!NAME.test(String(name))) return `Value at '${where}.toolUse.name' failed to satisfy constraint`;
      if (typeof input !== 'object' || input === null || Array.isArray(input))
        return `The format of the value at ${where}.toolUse.input is invalid. Provide a json object for the field and try again.`;
    }
    const given = (toolResult as { content?: Fields[] } | undefined)?.content;
    if (
      toolResult !== undefined &&
      (!given?.length || given.some((block) => 'text' in block && String(block.text).trim() === ''))
    )
      return `The text field in the ToolResultContentBlock object at ${where} is blank.`;
    if (document !== undefined && !/^(?! )[a-zA-Z0-9 ()[\]-]{1,200}$/.test(String((document as Fields).name)))
      return 'The file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets.';
    const { reasoningText, redactedContent } = (reasoningContent ?? {}) as {
      reasoningText?: Fields;
      redactedContent?: unknown;
    };
    if (reasoningContent !== undefined && redactedContent === undefined && typeof reasoningText?.signature !== 'string')
      return `${where}.reasoningContent.reasoningText.signature: Field required`;
  }
  return undefined;
}
