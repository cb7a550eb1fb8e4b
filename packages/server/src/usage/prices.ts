// Prices: what a model call costs.
//
// The operator configures what models cost, in US dollars per million tokens, and for each search of the web. Where the operator is silent, the built-in prices
// apply (known-models.ts), which have a date, because prices change. The cost of a call is computed once, when its response
// is stored, and does not change with the prices.
//
// Money is exact. A price has at most six decimals, so it is a whole number of picodollars per token, and a cost is a sum of
// whole numbers, rounded once, to a billionth of a dollar. The database adds up the calls, in `numeric`.
import { readFileSync } from 'node:fs';
import { type Model, providerFacts, providers, type Usage } from '@signalbox/contract';
import {
  type CalledModel,
  type KnownModel,
  type KnownModels,
  knownModels,
  knownNames,
  type ModelPrice,
} from './known-models.ts';

export interface Prices {
  /** The day of the built-in prices, such as `2026-11-17`; null if they don't apply. */
  readonly builtInDate: string | null;
  /**
   * The cost of a call in US dollars, to a billionth; null if the model has no price. Tokens that were cached, or written to the
   * cache, are among the input tokens.
   */
  costOf(model: CalledModel, usage: Omit<Usage, 'steps' | 'toolCalls' | 'costUsd'>): number | null;
  /** Whether calls of the model have a cost. */
  has(model: CalledModel): boolean;
  /** In US dollars per million tokens; null if the model has no price. */
  of(model: CalledModel): NonNullable<KnownModel['price']> | null;
}

/** Rounded to a billionth of a dollar, because sums of binary fractions are not exact. */
export function roundUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}

/** `provider/model`, as prices and reports name a model; `worker/queue` for one that the integrator runs. */
export function modelName({ provider, model, queue }: Pick<Model, 'provider' | 'model' | 'queue'>): string {
  return `${provider}/${provider === 'worker' ? queue : model}`;
}

/** `own`: by `provider/model`, or `provider/*` for every other model of the provider. `parsePrices` has checked them. */
export function createPrices(
  own: Readonly<Record<string, ModelPrice>>,
  builtIn: Pick<KnownModels, 'date' | 'models'> | null = null,
): Prices {
  const ownPrices = new Map<string, KnownModel['price']>(Object.entries(own));
  const known = new Map(Object.entries(builtIn?.models ?? {}));

  function priceOf(model: CalledModel): KnownModel['price'] {
    const set = ownPrices.get(modelName(model)) ?? ownPrices.get(`${model.provider}/*`);
    if (set) return set;
    // A fixed version may be known without a price of its own.
    for (const name of knownNames(model)) {
      const price = known.get(name)?.price;
      if (price) return price;
    }
    return null;
  }

  return {
    builtInDate: builtIn?.date ?? null,
    has: (model) => priceOf(model) !== null,
    of: priceOf,
    costOf(model, { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0, webSearches = 0 }) {
      const price = priceOf(model);
      if (!price) return null;
      const {
        inputUsd,
        cachedInputUsd = inputUsd,
        cacheWriteInputUsd = inputUsd,
        outputUsd,
      } = tierOf(price, inputTokens);
      // A provider that counts cached tokens separately must not make the cost negative.
      const cached = Math.min(cachedTokens, inputTokens);
      const written = Math.min(cacheWriteTokens, inputTokens - cached);
      const cost =
        BigInt(inputTokens - cached - written) * picoUsd(inputUsd) +
        BigInt(cached) * picoUsd(cachedInputUsd) +
        BigInt(written) * picoUsd(cacheWriteInputUsd) +
        BigInt(outputTokens) * picoUsd(outputUsd) +
        // The price of one, not of a million.
        BigInt(webSearches) * picoUsd(price.webSearchUsd ?? 0) * 1_000_000n;
      return Number((cost + 500n) / 1_000n) / 1e9;
    },
  };
}

/** A dearer tier is the price of all tokens of a call, not only of those above its limit. */
function tierOf(price: NonNullable<KnownModel['price']>, inputTokens: number): ModelPrice {
  const reached = (price.tiers ?? []).filter(({ aboveInputTokens }) => inputTokens > aboveInputTokens);
  return reached.reduce<ModelPrice & { aboveInputTokens?: number }>(
    (dearest, tier) => (tier.aboveInputTokens > (dearest.aboveInputTokens ?? 0) ? tier : dearest),
    price,
  );
}

/** Dollars per million tokens as picodollars per token. */
function picoUsd(usdPerMillion: number): bigint {
  return BigInt(Math.round(usdPerMillion * 1e6));
}

// ── The operator's configuration ──────────────────────────────────────────────────────────────────────────────────────

/**
 * The prices that apply: `builtin`, `off`, or prices of the operator as `parseOwnPrices` reads them, before the built-in ones. `own`: what
 * the operator has set apart from it, as such a text. Throws an AggregateError with one Error for each problem.
 */
export function parsePrices(text: string, own = ''): Prices {
  if (text !== 'builtin' && text !== 'off') {
    if (own !== '') throw problemsError(['has prices, and so has SIGNALBOX_MODEL_PRICES; use one of the two']);
    return createPrices(parseOwnPrices(text, 'neither builtin, off, JSON'), knownModels());
  }
  return createPrices(readableOwnPrices(own), text === 'off' ? null : knownModels());
}

/** None if there are problems, which their own setting reports. */
function readableOwnPrices(text: string): Record<string, ModelPrice> {
  try {
    return parseOwnPrices(text);
  } catch {
    return {};
  }
}

/**
 * Reads the JSON itself, or the path of a file that contains it; '' means no prices. Throws an AggregateError with one Error for
 * each problem.
 */
export function parseOwnPrices(text: string, neither = 'neither JSON'): Record<string, ModelPrice> {
  if (text === '') return {};
  let prices: unknown;
  const json = text.trimStart().startsWith('{') ? text : readPriceFile(text, neither);
  try {
    // `trim` also removes the byte order mark that some editors write.
    prices = JSON.parse(json.trim());
  } catch (error) {
    throw problemsError([`is not JSON: ${(error as Error).message}`]);
  }
  const problems = problemsOf(prices);
  if (problems.length > 0) throw problemsError(problems);
  return prices as Record<string, ModelPrice>;
}

function problemsError(problems: readonly string[]): AggregateError {
  return new AggregateError(problems.map((problem) => new Error(problem)));
}

function readPriceFile(path: string, neither: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw problemsError([`"${path}" is ${neither}, which starts with {, nor a readable file (${code})`]);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const EXAMPLE = `{ "openai/${providerFacts.openai.own.exampleModel}": { "inputUsd": 1, "cachedInputUsd": 0.05, "outputUsd": 5 } }`;

function problemsOf(prices: unknown): string[] {
  if (!isObject(prices)) return [`must be an object such as ${EXAMPLE}`];
  return Object.entries(prices).flatMap(([model, price]) =>
    [...modelProblems(model), ...priceProblems(price)].map((problem) => `${JSON.stringify(model)} ${problem}`),
  );
}

function modelProblems(model: string): string[] {
  const [, provider = '', name = ''] = /^([^/]*)\/(.*)$/s.exec(model) ?? [];
  if (!(providers as readonly string[]).includes(provider) || name === '') {
    return [`is not a model: use provider/model or provider/*, where provider is one of ${providers.join(', ')}`];
  }
  return name !== '*' && name.includes('*') ? [`has a * in the name: use ${provider}/* or the full name`] : [];
}

const fields = ['inputUsd', 'cachedInputUsd', 'cacheWriteInputUsd', 'outputUsd', 'webSearchUsd'] as const;
const optionalFields: readonly string[] = ['cachedInputUsd', 'cacheWriteInputUsd', 'webSearchUsd'];

function priceProblems(price: unknown): string[] {
  if (!isObject(price))
    return ['must be an object with inputUsd, outputUsd and, if they differ, cachedInputUsd and cacheWriteInputUsd'];
  const unknown = Object.keys(price)
    .filter((name) => !fields.some((field) => field === name))
    .map((name) => `has ${JSON.stringify(name)}, which is not one of ${fields.join(', ')}`);
  const wrong = fields.flatMap((field) => {
    const value = price[field];
    if (value === undefined) return optionalFields.includes(field) ? [] : [`has no ${field}`];
    return isPrice(value)
      ? []
      : [
          `has a wrong ${field}: use US dollars ${field === 'webSearchUsd' ? 'for one search' : 'per million tokens'}, a number from 0 to ${MAX_USD} with at most 6 decimals`,
        ];
  });
  return [...unknown, ...wrong];
}

// Far above every real price, and low enough that every cost is exact.
const MAX_USD = 1_000_000;

function isPrice(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_USD && Number(value.toFixed(6)) === value;
}
