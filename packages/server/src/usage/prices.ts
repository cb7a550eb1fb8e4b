// Prices: what a model call costs.
//
// The operator configures what models cost, in US dollars per million tokens. The service has no prices of its own, because they
// would become wrong without notice. The cost of a call is computed once, when its response is stored, and does not change with
// the prices.
//
// Money is exact. A price has at most six decimals, so it is a whole number of picodollars per token, and a cost is a sum of
// whole numbers, rounded once, to a billionth of a dollar. The database adds up the calls, in `numeric`.
import { readFileSync } from 'node:fs';
import { type Model, providerFacts, providers, type Usage } from '@signalbox/contract';

/** The price of one model as the operator configures it, in US dollars per million tokens. */
interface ModelPrice {
  inputUsd: number;
  /** For input tokens that the provider had cached. Default: the price of other input tokens. */
  cachedInputUsd?: number;
  /** For the input tokens that were written to the provider's cache. */
  cacheWriteInputUsd?: number;
  outputUsd: number;
}

export interface Prices {
  /**
   * The cost of a call in US dollars, to a billionth; null if the model has no price. Tokens that were cached, or written to the
   * cache, are among the input tokens.
   */
  costOf(
    model: string,
    usage: Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens' | 'cacheWriteTokens'>,
  ): number | null;
  /** Whether calls of the model have a cost. */
  has(model: string): boolean;
  /** In US dollars per million tokens; null if the model has no price. */
  of(model: string): { inputUsd: number; outputUsd: number } | null;
}

/** Rounded to a billionth of a dollar, because sums of binary fractions are not exact. */
export function roundUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}

/** `provider/model`, as prices and reports name a model; `worker/queue` for one that the integrator runs. */
export function modelName({ provider, model, queue }: Model): string {
  return `${provider}/${provider === 'worker' ? queue : model}`;
}

/** By `provider/model`, or `provider/*` for every other model of the provider. `parsePrices` has checked them. */
export function createPrices(prices: Readonly<Record<string, ModelPrice>>): Prices {
  const byModel = new Map(
    Object.entries(prices).map(
      ([model, { inputUsd, cachedInputUsd = inputUsd, cacheWriteInputUsd = inputUsd, outputUsd }]) => [
        model,
        {
          input: picoUsd(inputUsd),
          cached: picoUsd(cachedInputUsd),
          written: picoUsd(cacheWriteInputUsd),
          output: picoUsd(outputUsd),
        },
      ],
    ),
  );
  const priceOf = (model: string) => byModel.get(model) ?? byModel.get(`${model.split('/', 1)[0]}/*`);

  return {
    has: (model) => priceOf(model) !== undefined,
    of(model) {
      const price = priceOf(model);
      // A price is a whole number of picodollars a token, which is a millionth of a dollar a million.
      return price ? { inputUsd: Number(price.input) / 1e6, outputUsd: Number(price.output) / 1e6 } : null;
    },
    costOf(model, { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0 }) {
      const price = priceOf(model);
      if (!price) return null;
      // A provider that counts cached tokens separately must not make the cost negative.
      const cached = Math.min(cachedTokens, inputTokens);
      const written = Math.min(cacheWriteTokens, inputTokens - cached);
      const cost =
        BigInt(inputTokens - cached - written) * price.input +
        BigInt(cached) * price.cached +
        BigInt(written) * price.written +
        BigInt(outputTokens) * price.output;
      return Number((cost + 500n) / 1_000n) / 1e9;
    },
  };
}

/** Dollars per million tokens as picodollars per token. */
function picoUsd(usdPerMillion: number): bigint {
  return BigInt(Math.round(usdPerMillion * 1e6));
}

// ── The operator's configuration ──────────────────────────────────────────────────────────────────────────────────────

/**
 * Reads the JSON itself, or the path of a file that contains it; '' means no prices. Throws an AggregateError with one Error for
 * each problem.
 */
export function parsePrices(text: string): Prices {
  if (text === '') return createPrices({});
  let prices: unknown;
  const json = text.trimStart().startsWith('{') ? text : readPriceFile(text);
  try {
    // `trim` also removes the byte order mark that some editors write.
    prices = JSON.parse(json.trim());
  } catch (error) {
    throw new AggregateError([new Error(`is not JSON: ${(error as Error).message}`)]);
  }
  const problems = problemsOf(prices);
  if (problems.length > 0) throw new AggregateError(problems.map((problem) => new Error(problem)));
  return createPrices(prices as Record<string, ModelPrice>);
}

function readPriceFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new AggregateError([
      new Error(`"${path}" is neither JSON, which starts with {, nor a readable file (${code})`),
    ]);
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

const fields = ['inputUsd', 'cachedInputUsd', 'cacheWriteInputUsd', 'outputUsd'] as const;
const optionalFields: readonly string[] = ['cachedInputUsd', 'cacheWriteInputUsd'];

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
          `has a wrong ${field}: use US dollars per million tokens, a number from 0 to ${MAX_USD} with at most 6 decimals`,
        ];
  });
  return [...unknown, ...wrong];
}

// Far above every real price, and low enough that every cost is exact.
const MAX_USD = 1_000_000;

function isPrice(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_USD && Number(value.toFixed(6)) === value;
}
