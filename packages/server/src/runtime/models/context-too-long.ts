// Whether a provider refuses a request because it is longer than its model can read.
//
// OpenAI, llama.cpp and a few others have a code for it. Most have only a sentence, and each its own; vLLM, SGLang and the gateways
// in front of models repeat those of OpenAI. A sentence is searched here and never shown, because it may quote the prompt.

/** Lower case, as `code`, `type` and `status` are given here. */
const CODES =
  /^(context_length_exceeded|exceed_context_size_error|request_too_large|string_above_max_length|context_window_exceeded)$/;

const SENTENCES = [
  // OpenAI, vLLM, DeepSeek, OpenRouter, Together.
  /maximum context length/,
  // OpenAI (Responses).
  /exceeds the context window/,
  // Anthropic.
  /prompt is too long/,
  /exceed context limit/,
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
  // Text Generation Inference.
  /`inputs` tokens \+ `max_new_tokens` must be/,
  // Moonshot.
  /exceeded model token limit/,
  // MiniMax.
  /context window exceeds limit/,
];

/** `status`: undefined for an event of a stream. */
export function isContextTooLong(status: number | undefined, words: readonly string[], message: unknown): boolean {
  if (status === 413 || words.some((word) => CODES.test(word))) return true;
  if (status !== undefined && status !== 400 && status !== 422) return false;
  return typeof message === 'string' && SENTENCES.some((sentence) => sentence.test(message.toLowerCase()));
}
