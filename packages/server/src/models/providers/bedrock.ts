// Models at Amazon Bedrock, through its Converse API, with an API key or an access key.
import type { LanguageModelV4, LanguageModelV4Message } from '@ai-sdk/provider';
import { regionOf, signingKey } from '../keys/access-key.ts';
import { NO_KEY } from '../model/provider-key.ts';
import { eventFrames } from '../response/event-frames.ts';
import { createConverseReader } from './converse-events.ts';
import type { Provider } from './provider.ts';

/** By their names, also in inference profiles. */
const CLAUDE = /anthropic|claude/;

export const bedrock: Provider = {
  name: 'bedrock',
  keyHeader: ['authorization', 'Bearer '],
  keyFrom: (secret, context) => (secret.value.startsWith('{') ? signingKey(secret, context) : undefined),
  // Most models have no schema of a response: the package would ask for a call of a tool instead, which few can be made to do.
  takesSchema: false,
  takesToolFiles: true,
  reader: createConverseReader,
  framing: () => eventFrames('messageStop'),
  options: (_isOwn, { shows, config: { model = '', settings } }) => {
    const isAsked = shows?.reasoning && CLAUDE.test(model) && (settings?.reasoning ?? 'none') !== 'none';
    return { amazonBedrock: isAsked ? { reasoningConfig: { display: 'summarized' } } : {} };
  },
  cachePoint: (model) => (CLAUDE.test(model) ? { amazonBedrock: { cachePoint: { type: 'default' } } } : undefined),
  explain({ sentence }, { model = '' }, baseUrl) {
    const how = '`signalbox agents models bedrock` lists what can be called';
    if (/provided model identifier is invalid/.test(sentence)) return `no model of this region has this ID; ${how}`;
    if (!/on-demand throughput isn.t supported/.test(sentence)) return undefined;
    const ids = profilesOf(model, regionOf(baseUrl) ?? '');
    return `the model can only be called through an inference profile, such as ${ids.join(' or ')}; ${how}`;
  },
  async model(name, server) {
    const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock');
    const options = { ...server, apiKey: NO_KEY, region: 'in-the-base-url' };
    // Its copy of the types is older: it lacks a level of reasoning that no agent can ask for.
    const sdk = createAmazonBedrock(options).languageModel(name) as unknown as LanguageModelV4;
    return {
      specificationVersion: sdk.specificationVersion,
      provider: sdk.provider,
      modelId: sdk.modelId,
      supportedUrls: {},
      doGenerate: (options) => sdk.doGenerate(options),
      doStream: (options) => sdk.doStream({ ...options, prompt: options.prompt.map(withoutFilenames) }),
    };
  },
};

/** The areas of inference profiles, by the beginnings of their regions. */
const AREAS: readonly [region: string, area: string][] = [
  ['us-gov-', 'us-gov'],
  ['us-', 'us'],
  ['ca-', 'us'],
  ['eu-', 'eu'],
  ['ap-', 'apac'],
];

/** IDs that profiles of the model have where there are any. */
function profilesOf(model: string, region: string): string[] {
  const id = model.split('/').at(-1);
  const [, area] = AREAS.find(([beginning]) => region.startsWith(beginning)) ?? [];
  return [area, area === 'us-gov' ? undefined : 'global'].flatMap((one) => (one === undefined ? [] : [`${one}.${id}`]));
}

/** Bedrock refuses two documents of one name. Without one, the package numbers them; ours is in the text before. */
function withoutFilenames(message: LanguageModelV4Message): LanguageModelV4Message {
  if (message.role === 'user') return { ...message, content: message.content.map(unnamed) };
  if (message.role !== 'tool') return message;
  const content = message.content.map((part) => {
    if (part.type !== 'tool-result' || part.output.type !== 'content') return part;
    return { ...part, output: { ...part.output, value: part.output.value.map(unnamed) } };
  });
  return { ...message, content };
}

function unnamed<Part extends { readonly type: string }>(part: Part): Part {
  return part.type === 'file' ? { ...part, filename: undefined } : part;
}
