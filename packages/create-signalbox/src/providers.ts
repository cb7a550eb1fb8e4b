export interface Provider {
  label: string;
  hint?: string;
  /** In the short form, `provider/model`. */
  model: string;
  /** The environment variable with its key. */
  key: string;
}

/** The providers that the project can start with, by the name that `--provider` takes; `scripted` needs none. */
export const providers: Record<string, Provider> = {
  anthropic: { label: 'Anthropic', model: 'anthropic/claude-sonnet-5-5', key: 'ANTHROPIC_API_KEY' },
  openai: { label: 'OpenAI', model: 'openai/gpt-6.1-terra', key: 'OPENAI_API_KEY' },
  google: { label: 'Google', model: 'google/gemini-3.8-flash', key: 'GOOGLE_GENERATIVE_AI_API_KEY' },
};

export interface Server {
  label: string;
  baseUrl: string;
  /** The environment variable with its key, and the secret of the environment. Undefined: it needs none. */
  key?: string;
}

/** Servers with OpenAI's API, in place of a provider: the table of packages/contract/src/model-servers.ts. Their models are to be named. */
export const servers: Record<string, Server> = {
  openrouter: { label: 'OpenRouter', baseUrl: 'https://openrouter.ai/api/v1', key: 'OPENROUTER_API_KEY' },
  groq: { label: 'Groq', baseUrl: 'https://api.groq.com/openai/v1', key: 'GROQ_API_KEY' },
  mistral: { label: 'Mistral', baseUrl: 'https://api.mistral.ai/v1', key: 'MISTRAL_API_KEY' },
  xai: { label: 'xAI', baseUrl: 'https://api.x.ai/v1', key: 'XAI_API_KEY' },
  deepseek: { label: 'DeepSeek', baseUrl: 'https://api.deepseek.com/v1', key: 'DEEPSEEK_API_KEY' },
  moonshot: { label: 'Moonshot', baseUrl: 'https://api.moonshot.ai/v1', key: 'MOONSHOT_API_KEY' },
  together: { label: 'Together', baseUrl: 'https://api.together.ai/v1', key: 'TOGETHER_API_KEY' },
  fireworks: { label: 'Fireworks', baseUrl: 'https://api.fireworks.ai/inference/v1', key: 'FIREWORKS_API_KEY' },
  ollama: { label: 'Ollama', baseUrl: 'http://localhost:11434/v1' },
  vllm: { label: 'vLLM', baseUrl: 'http://localhost:8000/v1' },
  'lm-studio': { label: 'LM Studio', baseUrl: 'http://localhost:1234/v1' },
  'llama.cpp': { label: 'llama.cpp', baseUrl: 'http://localhost:8080/v1' },
  litellm: { label: 'LiteLLM', baseUrl: 'http://localhost:4000/v1', key: 'LITELLM_PROXY_API_KEY' },
};

export const scripted = 'scripted';
