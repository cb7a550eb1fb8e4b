// The path of the part of a request that a provider refuses, in the form in which it may be shown: `tools[5].function.parameters`,
// `messages.3.content.0`. A path can go through names of a tool's own schema, and a server could put anything there. So it ends before
// the first step that is neither a position nor a word of the formats themselves, unless it is no part of the request.

/** Words of the formats. They are in many requests, where they say nothing of what is asked. */
const WORDS = new Set(
  `messages message content role user assistant system developer tool tool_calls tool_call_id function name arguments parameters
  description tools custom input_schema type text image_url url image source media_type data file file_data document thinking signature
  redacted_thinking tool_use tool_use_id tool_result is_error input output call_id id encrypted_content summary instructions prompt model
  max_tokens max_completion_tokens max_output_tokens temperature top_p top_k seed stop stop_sequences stream stream_options include_usage
  reasoning reasoning_effort reasoning_content reasoning_details effort budget_tokens output_config response_format format schema
  json_schema strict tool_choice parallel_tool_calls store include prompt_cache_key cache_control metadata contents parts
  functionDeclarations function_declarations functionCall function_call functionResponse function_response inlineData inline_data
  mime_type mimeType thought thoughtSignature thought_signature generationConfig generation_config systemInstruction
  system_instruction thinkingConfig thinking_config parametersJsonSchema parameters_json_schema responseJsonSchema`.split(
    /\s+/,
  ),
);

/** Google's names of messages. */
const PREFIX = /^(?:GenerateContentRequest|body|json)\./;
const STEP = /^(?:[A-Za-z_][A-Za-z0-9_]{0,63}|\d{1,6})$/;
const MAX_LENGTH = 100;

/** The first path that says anything; undefined if none does. `isOfRequest`: whether a word is found in the request. */
export function shownParam(params: readonly string[], isOfRequest: (word: string) => boolean): string | undefined {
  for (const param of params) {
    const shown = shownPath(param, isOfRequest);
    if (shown !== undefined) return shown;
  }
  return undefined;
}

function shownPath(param: string, isOfRequest: (word: string) => boolean): string | undefined {
  let shown = '';
  for (const [whole, before, step, after] of param.replace(PREFIX, '').matchAll(/([.[]?)([^.[\]]+)(\]?)/g)) {
    const isPosition = /^\d+$/.test(step!);
    const isBracketed = before === '[';
    const isPlain = STEP.test(step!) && isBracketed === (after === ']') && (!isBracketed || isPosition);
    const isOurs = isPosition || WORDS.has(step!) || !isOfRequest(step!);
    const isFirst = shown === '';
    if (!isPlain || !isOurs || (isFirst && (isPosition || before !== '')) || shown.length + whole.length > MAX_LENGTH)
      break;
    shown += whole;
  }
  return shown === '' || /^(none|null)$/i.test(shown) ? undefined : shown;
}
