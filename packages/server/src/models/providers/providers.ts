// The providers that are called over the network.
import type { ProviderName } from '@signalbox/contract';
import { anthropic } from './anthropic.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { google } from './google.ts';
import { openai } from './openai.ts';
import { openaiCompatible } from './openai-compatible.ts';
import type { Provider } from './provider.ts';
import { vertex } from './vertex.ts';

type CalledName = Exclude<ProviderName, 'scripted' | 'worker'>;

export const calledProviders: Readonly<Record<CalledName, Provider>> = {
  openai,
  anthropic,
  google,
  azure,
  vertex,
  bedrock,
  'openai-compatible': openaiCompatible,
};

/** Undefined: it is not called over the network. */
export function providerOf(name: ProviderName): Provider | undefined {
  return name === 'scripted' || name === 'worker' ? undefined : calledProviders[name];
}
