/** The model providers and the facts about each. The server, the console, traces and documentation use this table. */

interface ProviderFacts {
  /** Its name in the console and the docs. */
  label: string;
  /** What the console adds to the name. */
  note?: string;
  /** `gen_ai.provider.name` in the semantic conventions of OpenTelemetry. */
  telemetryName: string;
  /** Its own API. A provider without one uses the agent's `baseUrl`, or no server at all. */
  own?: {
    /** With the version, without a trailing slash. */
    baseUrl: string;
    /** The name of its API key: of the environment's secret and of the operator's environment variable. */
    keyName: string;
    /** A model to start with. */
    exampleModel: string;
  };
  /** A cloud, in which each customer has servers: the agent names one of them as its `baseUrl`, or a gateway. */
  cloud?: {
    /** What the customer replaces is in capitals. */
    baseUrlForm: string;
    /** The usual name of the environment's secret with its key. There is no key of the operator for it. */
    keyName: string;
    /** Hosts of the cloud. */
    hosts: RegExp;
    /** Host and path of its servers. Any other address at its hosts is a typing error. */
    servers: RegExp;
  };
}

const table = <const T extends Record<string, ProviderFacts>>(facts: T) => facts;

/**
 * `scripted` needs no network and responds according to the agent's own script; `worker` is the integrator's own program, which
 * claims the agent's turns from a queue.
 */
export const providerFacts = table({
  scripted: { label: 'Scripted', note: 'responds from a script, without network', telemetryName: 'scripted' },
  openai: {
    label: 'OpenAI',
    telemetryName: 'openai',
    own: { baseUrl: 'https://api.openai.com/v1', keyName: 'OPENAI_API_KEY', exampleModel: 'gpt-6.1-terra' },
  },
  anthropic: {
    label: 'Anthropic',
    telemetryName: 'anthropic',
    own: {
      baseUrl: 'https://api.anthropic.com/v1',
      keyName: 'ANTHROPIC_API_KEY',
      exampleModel: 'claude-sonnet-5-5',
    },
  },
  google: {
    label: 'Google',
    telemetryName: 'gcp.gemini',
    own: {
      baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
      keyName: 'GOOGLE_GENERATIVE_AI_API_KEY',
      exampleModel: 'gemini-3.8-flash',
    },
  },
  azure: {
    label: 'Azure',
    note: 'OpenAI’s models in Microsoft Foundry',
    telemetryName: 'azure.ai.openai',
    cloud: {
      baseUrlForm: 'https://RESOURCE.openai.azure.com/openai/v1',
      keyName: 'AZURE_OPENAI_API_KEY',
      // Customers run gateways of their own below `cloudapp`.
      hosts: /(?<!\.cloudapp)\.azure\.(com|us|cn)$/,
      servers: /^[a-z0-9][a-z0-9-]*\.(openai|services\.ai|cognitiveservices)\.azure\.(com|us|cn)\/openai\/v1$/,
    },
  },
  vertex: {
    label: 'Vertex AI',
    note: 'Gemini at Google Cloud',
    telemetryName: 'gcp.vertex_ai',
    cloud: {
      baseUrlForm:
        'https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/publishers/google',
      keyName: 'GOOGLE_VERTEX_API_KEY',
      hosts: /(^|\.)googleapis\.com$/,
      // Without a project for keys of the express mode. The host of a location is named after it; that of `global` is not.
      servers:
        /^(aiplatform\.googleapis\.com\/v1(beta1)?\/(projects\/[a-z0-9.:-]+\/locations\/global\/)?|(?<location>[a-z]+-[a-z]+\d{1,2})-aiplatform\.googleapis\.com\/v1(beta1)?\/projects\/[a-z0-9.:-]+\/locations\/\k<location>\/|aiplatform\.(?<area>us|eu)\.rep\.googleapis\.com\/v1(beta1)?\/projects\/[a-z0-9.:-]+\/locations\/\k<area>\/)publishers\/google$/,
    },
  },
  bedrock: {
    label: 'Amazon Bedrock',
    note: 'models of many makers at AWS',
    telemetryName: 'aws.bedrock',
    cloud: {
      baseUrlForm: 'https://bedrock-runtime.REGION.amazonaws.com',
      keyName: 'AWS_BEARER_TOKEN_BEDROCK',
      // Gateways have other names at the same domain.
      hosts: /^bedrock.*\.(amazonaws\.com(\.cn)?|api\.aws)$/,
      servers: /^bedrock-runtime(-fips)?\.[a-z]{2,3}(-[a-z]+)+-\d{1,2}\.(amazonaws\.com(\.cn)?|api\.aws)$/,
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
/** The names of the API keys of all providers with their own API. */
export type ProviderKeyName = NonNullable<Own<(typeof providerFacts)[ProviderName]>>['keyName'];

/** A provider with its own API. */
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

/** Undefined if the provider does not have its own API. */
export function ownProvider(name: string): OwnProvider | undefined {
  return ownProviders.find((one) => one.name === name);
}

/** The name of the secret with its key, if an agent names none. Undefined: none has it. */
export function usualKeyName(name: string): string | undefined {
  const facts = factsOf(name);
  return facts?.own?.keyName ?? facts?.cloud?.keyName;
}

/** What `baseUrl` looks like for a provider that is a cloud. Undefined for any other. */
export function cloudUrlForm(name: string): string | undefined {
  return factsOf(name)?.cloud?.baseUrlForm;
}

/** Whether the address is a server of the provider itself, not of a gateway. */
export function isServerOf(name: string, { protocol, origin, host, pathname }: URL): boolean {
  const { own, cloud } = factsOf(name) ?? {};
  if (own) return origin === new URL(own.baseUrl).origin;
  return protocol === 'https:' && cloud !== undefined && cloud.servers.test(host + withoutSlash(pathname));
}

/** Why an agent can't have the address as its `baseUrl`, as the end of a sentence. Undefined: it can. */
export function baseUrlProblem(name: string, baseUrl: string): string | undefined {
  const url = URL.parse(baseUrl);
  if (url === null) return 'must be a URL';
  const cloud = factsOf(name)?.cloud;
  if (!cloud?.hosts.test(url.hostname) || cloud.servers.test(url.host + withoutSlash(url.pathname))) return undefined;
  return `must be like ${cloud.baseUrlForm}`;
}

function factsOf(name: string): ProviderFacts | undefined {
  return providers.includes(name as ProviderName) ? providerFacts[name as ProviderName] : undefined;
}

function withoutSlash(path: string): string {
  return path.replace(/\/+$/, '');
}
