/** Which models have a web search of their own, and what it can be told. What it can't enforce is refused: a list that is ignored protects nothing. */
import type { Model } from './models.ts';
import type { Tool, WebSearchTool } from './tools.ts';

/** The providers with a search, and the fields of the tool that their search enforces. */
const searches = {
  openai: ['allowedDomains', 'maxUses'],
  azure: ['allowedDomains', 'maxUses'],
  anthropic: ['allowedDomains', 'maxUses'],
  google: [],
  // It can leave out domains, but not allow some only.
  vertex: [],
} as const satisfies Partial<Record<Model['provider'], readonly (keyof WebSearchTool)[]>>;

/** What is wrong with the tool for a model. `field`: of the tool; null: the model can't have the tool. */
export interface WebSearchProblem {
  readonly field: 'allowedDomains' | 'maxUses' | null;
  /** Words that follow the name of the field, or of the tool. */
  readonly message: string;
}

export function webSearchProblem(
  tool: WebSearchTool,
  { provider, model = '' }: Pick<Model, 'provider' | 'model'>,
  tools: readonly Pick<Tool, 'type'>[],
): WebSearchProblem | null {
  const names = Object.keys(searches).join(', ');
  if (!Object.hasOwn(searches, provider))
    return {
      field: null,
      message: `is run by the model’s provider, and ${provider} has none: use a model of ${names}`,
    };
  const enforced: readonly string[] = searches[provider as keyof typeof searches];
  for (const field of ['allowedDomains', 'maxUses'] as const) {
    if (tool[field] === undefined || enforced.includes(field)) continue;
    const able = Object.entries(searches).flatMap(([name, fields]) =>
      (fields as readonly string[]).includes(field) ? [name] : [],
    );
    return { field, message: `can’t be enforced by ${provider}: leave it out, or use a model of ${able.join(' or ')}` };
  }
  if (provider !== 'google' && provider !== 'vertex') return null;
  const generation = geminiGeneration(model);
  if (generation === 0 || generation === 1)
    return { field: null, message: `is not known to work with ${model}: use Gemini 2 or later` };
  if (generation === 2 && tools.length > 1)
    return { field: null, message: `can’t be used together with other tools by ${model}: use Gemini 3 or later` };
  return null;
}

/** 0: it is no Gemini, such as a Gemma. An alias that ends in `latest` is the newest. */
function geminiGeneration(model: string): number {
  const [, number] = /(?:^|\/)gemini-(\d+)/.exec(model) ?? [];
  if (number !== undefined) return Number(number);
  return /(?:^|\/)gemini-(?:[a-z]+-)*latest$/.test(model) ? Number.POSITIVE_INFINITY : 0;
}
