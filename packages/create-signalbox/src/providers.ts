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

export const scripted = 'scripted';
