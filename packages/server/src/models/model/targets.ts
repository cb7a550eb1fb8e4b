// The server that a request to a model goes to, as far as its rules are known. What each refuses is in tables by this name.
import { type Model, ownProvider } from '@signalbox/contract';

/** `chat`: a server of OpenAI's chat completions that is not known: vLLM, llama.cpp, Ollama, LM Studio, a gateway. */
export type Target = 'openai' | 'anthropic' | 'google' | 'bedrock' | ChatTarget;

type ChatTarget = 'chat' | (typeof hosts)[number][0];

/** Servers of chat completions, by their hosts. */
const hosts = [
  ['openai-chat', /^api\.openai\.com$/],
  ['azure', /\.(openai|services\.ai|cognitiveservices)\.azure\.com$/],
  ['google-chat', /^(generativelanguage|[\w-]*aiplatform)\.googleapis\.com$/],
  ['openrouter', /(^|\.)openrouter\.ai$/],
  ['deepseek', /(^|\.)deepseek\.com$/],
  ['moonshot', /(^|\.)(moonshot\.(ai|cn)|kimi\.(com|ai))$/],
  ['mistral', /(^|\.)mistral\.ai$/],
  ['groq', /(^|\.)groq\.com$/],
  ['xai', /(^|\.)x\.ai$/],
] as const;

/** Providers whose format is not OpenAI's. */
const formats: Partial<Record<Model['provider'], Target>> = {
  anthropic: 'anthropic',
  google: 'google',
  vertex: 'google',
  bedrock: 'bedrock',
};

/** Where the requests to a model go; null if nothing says so. */
export function addressOf({ provider, baseUrl }: Model): URL | null {
  return URL.parse(baseUrl ?? ownProvider(provider)?.baseUrl ?? '');
}

/** `baseUrl`: the one that the request goes to. */
export function targetOf(provider: Model['provider'], baseUrl: URL): Target {
  if (provider !== 'openai-compatible') return formats[provider] ?? 'openai';
  return hosts.find(([, host]) => host.test(baseUrl.hostname))?.[0] ?? 'chat';
}
