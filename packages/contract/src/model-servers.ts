/**
 * Servers of OpenAI's chat completions: what an agent with the provider `openai-compatible` has as `baseUrl` and `apiKeySecret`. The
 * console, the command line, `create-signalbox` and the documentation use this table, and tests have a conversation with each.
 */
export interface ModelServer {
  /** In place of a provider for `signalbox agents models` and `create-signalbox --provider`. */
  readonly name: string;
  readonly label: string;
  /** Up to and including the version. A server that people run themselves has the address that it listens at by default. */
  readonly baseUrl: string;
  /** The usual name of its API key. Undefined: it needs none as it is installed. */
  readonly keyName?: string;
}

export const modelServers: readonly ModelServer[] = [
  {
    name: 'openrouter',
    label: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyName: 'OPENROUTER_API_KEY',
  },
  { name: 'groq', label: 'Groq', baseUrl: 'https://api.groq.com/openai/v1', keyName: 'GROQ_API_KEY' },
  { name: 'mistral', label: 'Mistral', baseUrl: 'https://api.mistral.ai/v1', keyName: 'MISTRAL_API_KEY' },
  { name: 'xai', label: 'xAI', baseUrl: 'https://api.x.ai/v1', keyName: 'XAI_API_KEY' },
  { name: 'deepseek', label: 'DeepSeek', baseUrl: 'https://api.deepseek.com/v1', keyName: 'DEEPSEEK_API_KEY' },
  { name: 'moonshot', label: 'Moonshot', baseUrl: 'https://api.moonshot.ai/v1', keyName: 'MOONSHOT_API_KEY' },
  { name: 'together', label: 'Together', baseUrl: 'https://api.together.ai/v1', keyName: 'TOGETHER_API_KEY' },
  {
    name: 'fireworks',
    label: 'Fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyName: 'FIREWORKS_API_KEY',
  },
  { name: 'ollama', label: 'Ollama', baseUrl: 'http://localhost:11434/v1' },
  { name: 'vllm', label: 'vLLM', baseUrl: 'http://localhost:8000/v1' },
  { name: 'lm-studio', label: 'LM Studio', baseUrl: 'http://localhost:1234/v1' },
  { name: 'llama.cpp', label: 'llama.cpp', baseUrl: 'http://localhost:8080/v1' },
  { name: 'litellm', label: 'LiteLLM', baseUrl: 'http://localhost:4000/v1', keyName: 'LITELLM_PROXY_API_KEY' },
];

/** Undefined if no server of the table has the name. */
export function modelServer(name: string): ModelServer | undefined {
  return modelServers.find((server) => server.name === name);
}
