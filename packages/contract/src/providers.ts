/** The providers of models, and the facts about each: server, console, traces and documentation take them from here. */

interface ProviderFacts {
  /** What people call it. */
  label: string;
  /** What the console adds to its name. */
  note?: string;
  /** `gen_ai.provider.name` in the semantic conventions of OpenTelemetry. */
  telemetryName: string;
  /** Its own server. Without one, an Agent's `baseUrl` says which server is asked, if any. */
  own?: {
    /** With the version, without a slash at the end. */
    baseUrl: string;
    /** The name of its key: of the Environment's secret, and of the operator's environment variable. */
    keyName: string;
    /** A model to start with. */
    exampleModel: string;
  };
}

const table = <const T extends Record<string, ProviderFacts>>(facts: T) => facts;

/**
 * `scripted` needs no network and answers by the Agent's own script; `worker` is a program of the integrator's own, which
 * claims the Agent's turns from a queue.
 */
export const providerFacts = table({
  scripted: { label: 'Scripted', note: 'answers by a script, without network', telemetryName: 'scripted' },
  openai: {
    label: 'OpenAI',
    telemetryName: 'openai',
    own: { baseUrl: 'https://api.openai.com/v1', keyName: 'OPENAI_API_KEY', exampleModel: 'gpt-5' },
  },
  anthropic: {
    label: 'Anthropic',
    telemetryName: 'anthropic',
    own: {
      baseUrl: 'https://api.anthropic.com/v1',
      keyName: 'ANTHROPIC_API_KEY',
      exampleModel: 'claude-sonnet-4-5',
    },
  },
  google: {
    label: 'Google',
    telemetryName: 'gcp.gemini',
    own: {
      baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
      keyName: 'GOOGLE_GENERATIVE_AI_API_KEY',
      exampleModel: 'gemini-2.5-flash',
    },
  },
  'openai-compatible': {
    label: 'OpenAI-compatible',
    note: 'Ollama, vLLM, gateways',
    telemetryName: 'openai-compatible',
  },
  worker: { label: 'Worker', note: 'a program of your own', telemetryName: 'worker' },
});

export type ProviderName = keyof typeof providerFacts;
export const providers = Object.keys(providerFacts) as ProviderName[];

type Own<F> = F extends { own: infer O extends NonNullable<ProviderFacts['own']> } ? O : undefined;
/** The key name of every provider with a server of its own. */
export type ProviderKeyName = NonNullable<Own<(typeof providerFacts)[ProviderName]>>['keyName'];

/** A provider with a server of its own. */
export interface OwnProvider {
  name: ProviderName;
  label: string;
  baseUrl: string;
  keyName: ProviderKeyName;
  exampleModel: string;
}

export const ownProviders: readonly OwnProvider[] = providers.flatMap((name) => {
  const { label, own }: ProviderFacts = providerFacts[name];
  return own ? [{ name, label, ...own, keyName: own.keyName as ProviderKeyName }] : [];
});

/** Undefined if the provider has no server of its own. */
export function ownProvider(name: string): OwnProvider | undefined {
  return ownProviders.find((one) => one.name === name);
}
