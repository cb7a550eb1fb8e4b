// Whether a provider refuses a request because it is longer than its model can read.
//
// OpenAI, llama.cpp and a few others have a code for it. Most have only a sentence, and each its own; vLLM, SGLang and the gateways
// in front of models repeat the words of OpenAI. Others use the words for something else: a string that is too long may be the
// description of a tool, which no summary of the conversation shortens.
import type { ProviderError } from '../model/provider-error.ts';

/** Lower case, as `words` are. */
const CODES = /^(context_length_exceeded|exceed_context_size_error|context_window_exceeded)$/;

/** Anthropic, with 413: too many bytes. That may be a file, if the error speaks of one. */
const TOO_LARGE = /^request_too_large$/;

/** Something in the request is too long. It is the conversation only if the error names it, and not a file in it. */
const A_PART = /^(string|array)_above_max_length$/;
const OF_CONVERSATION = /^(messages|input|contents|prompt)\b(?!.*((name|id)$|image|file|source|inline))/;

/** Sentences about other lengths, and about rates, which also count tokens. */
const OTHER_SENTENCES =
  /(string|array) too long|above_max_length|max_?(completion_|output_)?tokens[`'"]? (is )?too large|max tokens must be|please wait|per[ -]min|rate.?limit|too many requests|throttl/;

/** vLLM: `max_tokens` is too large beside this input. A shorter one makes room only if it is most of it. */
const ROOM = /maximum context length is ([\d,]+) tokens.{0,80}has ([\d,]+) input tokens/;

const SENTENCES = [
  // OpenAI, vLLM, DeepSeek, OpenRouter, Together.
  /maximum context length/,
  // OpenAI (Responses).
  /exceeds the context window/,
  // Anthropic; Ollama.
  /prompt (is )?too long/,
  /exceed(ed)? (max )?context (limit|length)/,
  // Google.
  /input token count.{0,40} exceeds the maximum/,
  // Amazon Bedrock.
  /input is too long for requested model/,
  // xAI.
  /maximum prompt length/,
  // Groq.
  /reduce the length of the messages/,
  // Mistral.
  /too large for model with [\d,]+ maximum context/,
  // llama.cpp.
  /exceeds the available context size/,
  // LM Studio.
  /greater than the context length/,
  // Text Generation Inference, Together.
  /`?inputs`? tokens \+ `?max_new_tokens`? must be/,
  /longer than the model's context length/,
  // Moonshot.
  /exceeded model token limit/,
  /input token length too long/,
  // MiniMax.
  /context window exceeds limit/,
  // GitHub Copilot.
  /prompt token count of [\d,]+ exceeds the limit/,
  // Cohere.
  /too many tokens: total number/,
  // z.ai.
  /prompt exceeds max length/,
];

/** Some report the request's fault with the status of their own. */
const STATUSES: readonly (number | undefined)[] = [undefined, 400, 403, 413, 422, 500];

/** `status`: undefined for an event of a stream. `isOfFile`: the error is about a file that the request has. */
export function isContextTooLong(
  status: number | undefined,
  error: Pick<ProviderError, 'words' | 'params' | 'sentence'> | undefined,
  isOfFile = false,
): boolean {
  if (status === 413 && !isOfFile) return true;
  if (error === undefined) return false;
  const { words, params, sentence } = error;
  if (words.some((word) => A_PART.test(word))) return params.some((param) => OF_CONVERSATION.test(param));
  const room = ROOM.exec(sentence);
  if (room) return 2 * numberOf(room[2]!) > numberOf(room[1]!);
  if (OTHER_SENTENCES.test(sentence)) return false;
  if (words.some((word) => CODES.test(word) || (TOO_LARGE.test(word) && !isOfFile))) return true;
  return STATUSES.includes(status) && SENTENCES.some((pattern) => pattern.test(sentence));
}

function numberOf(digits: string): number {
  return Number(digits.replaceAll(',', ''));
}
