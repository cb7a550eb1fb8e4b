// What the servers of models refuse in a transcript, and what they want back. A server that is not known gets the form that all of
// them accept, as far as there is one.
import type { ModelCall } from './model.ts';
import type { Target } from './targets.ts';

export interface PromptRules {
  /** The ids of calls that are sent as they are. Any other becomes nine letters and digits, which all servers accept. */
  id: RegExp;
  /** The ids that a server gave its calls itself, and gets back. */
  ownId: RegExp | null;
  /** Whether a user message may follow the results of tools. If not, a short response of the model is put between them. */
  userAfterTool: boolean;
  /** Whether a response may have several calls. If not, each call is followed by its result. */
  parallelCalls: boolean;
  /** Whether a response with calls has a text, if only an empty one. Null becomes "None" in the prompt of some templates. */
  textBesideCalls: boolean;
  /** Whether the texts of a message become one text. */
  joinsTexts: boolean;
  /** Whether a text without characters is sent if the provider has put data on it. */
  keepsSealedTexts: boolean;
  /**
   * The responses that are sent with their reasoning: all of the transcript, those since the last complete response, or none.
   * `always`: those with calls also if they have none, as an empty text.
   */
  reasoning: 'always' | 'asReceived' | 'sinceResponse' | 'never';
  /**
   * When a provider gets back what it ran itself. OpenAI refuses a search without the reasoning before it; Anthropic needs its results
   * for what it cites later.
   */
  ran: 'always' | 'withReasoning' | 'never';
}

const NINE = /^[A-Za-z0-9]{9}$/;
/** The ids that a server gets back as it gave them: nine characters, and Kimi's form, because it imitates the ids that it sees. */
export const RETURNED_ID = /^([A-Za-z0-9]{9}|functions\.[\w-]{1,64}:\d{1,4})$/;

const provider: PromptRules = {
  id: /^[A-Za-z0-9_-]{1,40}$/,
  ownId: null,
  userAfterTool: true,
  parallelCalls: true,
  textBesideCalls: false,
  joinsTexts: false,
  keepsSealedTexts: false,
  reasoning: 'sinceResponse',
  ran: 'always',
};

const chat: PromptRules = {
  ...provider,
  id: NINE,
  ownId: RETURNED_ID,
  userAfterTool: false,
  textBesideCalls: true,
  joinsTexts: true,
  reasoning: 'asReceived',
  ran: 'never',
};

const rules: Record<Target, PromptRules> = {
  openai: { ...provider, ran: 'withReasoning' },
  anthropic: provider,
  google: { ...provider, keepsSealedTexts: true },
  // Most of its models take no text beside results.
  bedrock: { ...provider, userAfterTool: false },
  chat,
  'openai-chat': { ...chat, id: provider.id, ownId: null, userAfterTool: true, reasoning: 'never' },
  azure: { ...chat, id: provider.id, ownId: null, userAfterTool: true, reasoning: 'never' },
  'google-chat': { ...chat, id: provider.id, userAfterTool: true },
  openrouter: chat,
  deepseek: { ...chat, id: provider.id, userAfterTool: true, reasoning: 'always' },
  moonshot: { ...chat, id: provider.id, userAfterTool: true, reasoning: 'always' },
  // It refuses fields that it does not know.
  mistral: { ...chat, reasoning: 'never' },
  groq: { ...chat, id: provider.id, userAfterTool: true },
  xai: { ...chat, id: provider.id, userAfterTool: true, reasoning: 'never' },
};

/** Models whose rules are their own, whichever server runs them: their templates and their makers' interfaces have them. */
const models: readonly [RegExp, Partial<PromptRules>][] = [
  // It refuses the reasoning of earlier responses.
  [/deepseek-(reasoner|r1)/, { reasoning: 'never' }],
  [/deepseek-?v[4-9]|kimi/, { reasoning: 'always' }],
  // "This model only supports single tool-calls at once!"
  [/llama-?3\.[123]/, { parallelCalls: false }],
];

/** The rules of models at Bedrock, by the maker in their names. */
const bedrockModels: readonly [RegExp, Partial<PromptRules>][] = [
  [/anthropic|claude/, { userAfterTool: true }],
  [/mistral/, { id: NINE }],
];

type Call = Pick<ModelCall, 'returnsReasoning'> & { config: Pick<ModelCall['config'], 'model'> };

export function promptRulesOf(target: Target, { config: { model = '' }, returnsReasoning }: Call): PromptRules {
  const own = rules[target];
  if (returnsReasoning) return { ...own, reasoning: 'always' };
  if (target === 'bedrock') {
    const [, more] = bedrockModels.find(([name]) => name.test(model)) ?? [];
    return { ...own, ...more };
  }
  const isChat = !['openai', 'anthropic', 'google'].includes(target);
  // A server that refuses unknown fields refuses them whatever its model wants.
  if (!isChat || own.reasoning === 'never') return own;
  return { ...own, ...models.find(([name]) => name.test(model.toLowerCase()))?.[1] };
}
