import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Model, ProviderName } from '@signalbox/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readConfig } from '../config/config.ts';
import { knownModels } from './known-models.ts';
import { createPrices, modelName, parseOwnPrices, parsePrices, roundUsd } from './prices.ts';

const million = { inputTokens: 1_000_000, outputTokens: 0, cachedTokens: 0 };

/** A model at the address of its provider. */
function named(name: string): Model {
  const [, provider, model] = /^([^/]*)\/(.*)$/.exec(name) ?? [];
  return { provider: provider as ProviderName, model: model! };
}

function problemsOf(text: string): string[] {
  try {
    parseOwnPrices(text);
  } catch (error) {
    return (error as AggregateError).errors.map(({ message }: Error) => message);
  }
  return [];
}

test.each<[Model, string]>([
  [{ provider: 'openai', model: 'gpt-5' }, 'openai/gpt-5'],
  [
    { provider: 'openai-compatible', model: 'org/llama:7b', baseUrl: 'https://x.example/v1' },
    'openai-compatible/org/llama:7b',
  ],
  [{ provider: 'worker', queue: 'support' }, 'worker/support'],
])('%j is named %s', (model, name) => {
  expect(modelName(model)).toBe(name);
});

test("a model's own price goes before its provider's, and other providers have none", () => {
  const prices = parsePrices('{"openai/*":{"inputUsd":1,"outputUsd":1},"openai/gpt-5":{"inputUsd":2,"outputUsd":2}}');
  expect(prices.costOf(named('openai/gpt-5'), million)).toBe(2);
  expect(prices.costOf(named('openai/gpt-5-mini'), million)).toBe(1);
  expect(prices.costOf(named('openai/org/other'), million)).toBe(1);
  expect(prices.costOf(named('openai-compatible/gpt-5'), million)).toBeNull();
  const names = ['openai/gpt-5', 'openai/x', 'openai-compatible/gpt-5', 'anthropic/constructor'];
  expect(names.map((name) => prices.has(named(name)))).toEqual([true, true, false, false]);
});

test('cached tokens are among the input tokens, at their own price or that of the others', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000 };
  const cost = (cachedInputUsd?: number) =>
    createPrices({
      'openai/a': { inputUsd: 10, outputUsd: 50, ...(cachedInputUsd !== undefined && { cachedInputUsd }) },
    }).costOf(named('openai/a'), usage);
  expect(cost(1)).toBe(6 + 0.4 + 5);
  expect(cost(0)).toBe(11);
  expect(cost()).toBe(15);
});

test.each<[number | undefined, number, number]>([
  [0.01, 3, 1 + 0.03],
  [0.000001, 1, 1.000001],
  [0.014, 1_000_000, 14_001],
  [undefined, 3, 1],
  [0.01, 0, 1],
])('with %j for a search, %i of them beside a million tokens cost %j', (webSearchUsd, webSearches, usd) => {
  const price = { inputUsd: 1, outputUsd: 1, ...(webSearchUsd !== undefined && { webSearchUsd }) };
  const prices = parsePrices(JSON.stringify({ 'openai/a': price }));
  expect(prices.costOf(named('openai/a'), { ...million, webSearches })).toBe(usd);
});

test('tokens that are written to the cache are among the input tokens, at their own price or that of the others', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 400_000, cacheWriteTokens: 500_000, outputTokens: 0 };
  const cost = (price: { cachedInputUsd?: number; cacheWriteInputUsd?: number }) =>
    createPrices({ 'openai/a': { inputUsd: 10, outputUsd: 50, ...price } }).costOf(named('openai/a'), usage);
  expect(cost({ cachedInputUsd: 1, cacheWriteInputUsd: 12.5 })).toBe(1 + 0.4 + 6.25);
  expect(cost({ cachedInputUsd: 1 })).toBe(6 + 0.4);
  expect(cost({})).toBe(10);
  // A server that counts wrongly does not make the cost negative.
  const wrong = { ...usage, cacheWriteTokens: 9_000_000 };
  const free = createPrices({ 'openai/a': { inputUsd: 10, cacheWriteInputUsd: 0, outputUsd: 0 } });
  expect(free.costOf(named('openai/a'), wrong)).toBe(4);
  expect(
    parsePrices('{"openai/a":{"inputUsd":1,"cacheWriteInputUsd":2,"outputUsd":0}}').costOf(named('openai/a'), usage),
  ).toBe(1.5);
});

test('a price of nothing is a price', () => {
  const prices = parsePrices('{"openai-compatible/*":{"inputUsd":0,"outputUsd":0}}');
  expect(prices.costOf(named('openai-compatible/x'), million)).toBe(0);
  expect(prices.has(named('openai-compatible/x'))).toBe(true);
});

test('a cost is exact to a billionth of a dollar, whatever the tokens and prices', () => {
  // Written as an operator would, and separately from the code under test: a decimal text and a whole number of millionths.
  const price = fc.integer({ min: 0, max: 1_000_000_000 }).map((micro) => ({
    text: `${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, '0')}`,
    micro: BigInt(micro),
  }));
  const tokens = fc.oneof(fc.nat(100_000), fc.nat(1_000_000_000));
  fc.assert(
    fc.property(price, price, price, tokens, tokens, tokens, (input, cached, output, fresh, read, written) => {
      const prices = parsePrices(
        `{"openai/a":{"inputUsd":${input.text},"cachedInputUsd":${cached.text},"outputUsd":${output.text}}}`,
      );
      const cost = prices.costOf(named('openai/a'), {
        inputTokens: fresh + read,
        cachedTokens: read,
        outputTokens: written,
      })!;
      const pico = BigInt(fresh) * input.micro + BigInt(read) * cached.micro + BigInt(written) * output.micro;
      const nano = BigInt(Math.round(cost * 1e9));
      // Half a billionth at most, and the number's decimals are those of the billionths: what PostgreSQL gets is exact.
      const error = nano * 1000n - pico;
      expect(error <= 500n && error >= -500n).toBe(true);
      if (nano < 2n ** 50n) expect(Number(cost.toFixed(9))).toBe(cost);
    }),
    { numRuns: 500 },
  );
});

test('counts that do not add up never make a cost negative', () => {
  const prices = createPrices({ 'openai/a': { inputUsd: 10, cachedInputUsd: 1, outputUsd: 0 } });
  expect(prices.costOf(named('openai/a'), { inputTokens: 1_000_000, cachedTokens: 9_000_000, outputTokens: 0 })).toBe(
    1,
  );
});

test('a file of prices is read, also with the mark that some editors put before a text', () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-prices-'));
  const file = join(directory, 'prices.json');
  writeFileSync(file, '\uFEFF{"openai/gpt-5":{"inputUsd":1.25,"outputUsd":10}}\n');
  expect(readConfig({}, { SIGNALBOX_MODEL_PRICES: file }).prices.costOf(named('openai/gpt-5'), million)).toBe(1.25);
  rmSync(directory, { recursive: true });
  expect(problemsOf(file)).toEqual([expect.stringContaining('ENOENT')]);
});

const own = '{"openai/gpt-6.1-terra":{"inputUsd":7,"outputUsd":7}}';

test.each<[Record<string, string>, { known: number | null; other: number | null }]>([
  [{}, { known: 1, other: 0.75 }],
  [{ SIGNALBOX_PRICES: 'builtin' }, { known: 1, other: 0.75 }],
  [{ SIGNALBOX_PRICES: 'off' }, { known: null, other: null }],
  [{ SIGNALBOX_PRICES: own }, { known: 7, other: 0.75 }],
  [{ SIGNALBOX_MODEL_PRICES: own }, { known: 7, other: 0.75 }],
  [
    { SIGNALBOX_PRICES: 'builtin', SIGNALBOX_MODEL_PRICES: own },
    { known: 7, other: 0.75 },
  ],
  [
    { SIGNALBOX_PRICES: 'off', SIGNALBOX_MODEL_PRICES: own },
    { known: 7, other: null },
  ],
])('with %j, a million tokens cost %j', (env, { known, other }) => {
  // The data changes with each release, so only its own prices are fixed here.
  const builtIn = knownModels();
  const expected = (name: string, usd: number | null) =>
    usd === null || usd === 7 ? usd : builtIn.models[name]!.price!.inputUsd;
  const { prices } = readConfig({}, env);
  for (const [name, usd] of [
    ['openai/gpt-6.1-terra', known],
    ['google/gemini-3.8-flash', other],
  ] as const)
    expect(prices.costOf(named(name), { ...million, inputTokens: 1_000 })).toBe(
      usd === null ? null : roundUsd(expected(name, usd)! / 1_000),
    );
  expect(prices.builtInDate).toBe(env.SIGNALBOX_PRICES === 'off' ? null : builtIn.date);
});

test('prices in both variables, and what is neither builtin, off, JSON nor a file, are refused with the name of the variable', () => {
  const read = (env: Record<string, string>) => () => readConfig({}, env);
  expect(read({ SIGNALBOX_PRICES: own, SIGNALBOX_MODEL_PRICES: own })).toThrow(
    'SIGNALBOX_PRICES: has prices, and so has SIGNALBOX_MODEL_PRICES; use one of the two',
  );
  expect(read({ SIGNALBOX_PRICES: 'none' })).toThrow('SIGNALBOX_PRICES: "none" is neither builtin, off, JSON');
  expect(read({ SIGNALBOX_PRICES: 'off', SIGNALBOX_MODEL_PRICES: '{' })).toThrow(
    /^SIGNALBOX_MODEL_PRICES: is not JSON/,
  );
});

/** Rows of the data as they were on 17 Nov 2026. */
const builtIn = createPrices(
  {},
  {
    date: '2026-11-17',
    models: Object.fromEntries(
      Object.entries({
        'openai/gpt-6.1-terra': {
          inputUsd: 1,
          cachedInputUsd: 0.05,
          cacheWriteInputUsd: 1.25,
          outputUsd: 5,
          tiers: [
            {
              aboveInputTokens: 272_000,
              inputUsd: 2,
              cachedInputUsd: 0.1,
              cacheWriteInputUsd: 2.5,
              outputUsd: 7.5,
            },
          ],
        },
        'openai/gpt-5.4-pro': { inputUsd: 30, outputUsd: 180 },
        'openai/gpt-4o': { inputUsd: 2.5, cachedInputUsd: 1.25, outputUsd: 10 },
        'openai/gpt-4o-2024-05-13': { inputUsd: 5, outputUsd: 15 },
        'openai/gpt-4o-2024-08-06': null,
        'openai/gpt-4-0613': null,
        'anthropic/claude-sonnet-4-5': { inputUsd: 3, cachedInputUsd: 0.3, cacheWriteInputUsd: 3.75, outputUsd: 15 },
        'anthropic/tiers': {
          inputUsd: 1,
          outputUsd: 1,
          tiers: [
            { aboveInputTokens: 2_000, inputUsd: 4, outputUsd: 4 },
            { aboveInputTokens: 1_000, inputUsd: 2, outputUsd: 2 },
          ],
        },
        'google/gemini-2.5-pro': {
          inputUsd: 1.25,
          cachedInputUsd: 0.125,
          outputUsd: 10,
          tiers: [{ aboveInputTokens: 200_000, inputUsd: 2.5, cachedInputUsd: 0.25, outputUsd: 15 }],
        },
        'google/gemma-4-31b-it': null,
      }).map(([name, price]) => [name, { contextTokens: null, input: null, price, endsAt: null }]),
    ),
  },
);

test.each<[string, { in: number; cached?: number; written?: number; out: number }, number]>([
  // 100,000 × $1 + 100,000 × $0.05 + 72,000 × $1.25 + 10,000 × $5, over a million.
  ['openai/gpt-6.1-terra', { in: 272_000, cached: 100_000, written: 72_000, out: 10_000 }, 0.245],
  // One token more: 100,001 × $2 + 100,000 × $0.10 + 72,000 × $2.50 + 10,000 × $7.50.
  ['openai/gpt-6.1-terra', { in: 272_001, cached: 100_000, written: 72_000, out: 10_000 }, 0.465002],
  // Without a price of their own, cached tokens cost what others do: 1,000 × $30.
  ['openai/gpt-5.4-pro', { in: 1_000, cached: 1_000, out: 0 }, 0.03],
  // 1 × $2.50 + 200,000 × $0.25 + 100 × $15.
  ['google/gemini-2.5-pro', { in: 200_001, cached: 200_000, out: 100 }, 0.0515025],
  // What the model writes does not count for the tier: 200,000 × $1.25 + 60,000 × $10.
  ['google/gemini-2.5-pro', { in: 200_000, out: 60_000 }, 0.85],
  ['google/models/gemini-2.5-pro', { in: 1_000, out: 0 }, 0.00125],
  ['anthropic/tiers', { in: 1_000, out: 0 }, 0.001],
  ['anthropic/tiers', { in: 2_000, out: 0 }, 0.004],
  ['anthropic/tiers', { in: 2_001, out: 0 }, 0.008004],
  // A fixed version has the price of its model, unless it is known to have its own.
  ['anthropic/claude-sonnet-4-5-20250929', { in: 1_000, written: 1_000, out: 0 }, 0.00375],
  ['openai/gpt-4o-2024-08-06', { in: 1_000, out: 0 }, 0.0025],
  ['openai/gpt-4o-2024-05-13', { in: 1_000, out: 0 }, 0.005],
])('by the built-in prices, a call of %s with %j costs %d', (name, tokens, usd) => {
  const usage = {
    inputTokens: tokens.in,
    cachedTokens: tokens.cached ?? 0,
    cacheWriteTokens: tokens.written ?? 0,
    outputTokens: tokens.out,
  };
  expect(builtIn.costOf(named(name), usage)).toBe(usd);
});

test.each([
  'google/gemma-4-31b-it',
  'openai/gpt-4-0613',
  'openai/ft:gpt-4o:acme::abc',
  'openai/gpt-4o-realtime',
  'openai/gpt-4o-2024-08-06-x',
  'openai/constructor',
  'openai-compatible/gpt-4o',
  'scripted/gpt-4o',
])('%s has no built-in price: it is not known, or another model', (name) => {
  expect(builtIn.has(named(name))).toBe(false);
});

test.each<[Model['provider'], string, boolean]>([
  ['openai', 'https://api.openai.com/v1', true],
  ['openai', 'https://api.openai.com/v1/?project=a', true],
  ['openai', 'https://gateway.example/v1', false],
  ['openai', 'http://api.openai.com/v1', false],
  ['openai', 'https://eu.api.openai.com/v1', false],
  ['openai', 'https://api.openai.com.example/v1', false],
  ['openai', 'https://acme.openai.azure.com/openai/v1', false],
  ['openai', 'http://127.0.0.1:4000/v1', false],
  ['azure', 'https://acme.openai.azure.com/openai/v1', false],
  ['openai-compatible', 'https://api.openai.com/v1', false],
])('a model of %s at %s has the provider’s built-in price: %s', (provider, baseUrl, has) => {
  const model = { provider, model: 'gpt-4o', baseUrl };
  expect(builtIn.has(model)).toBe(has);
  expect(builtIn.costOf(model, million)).toBe(has ? 2.5 : null);
  // The operator knows what their server costs.
  expect(createPrices({ [`${provider}/gpt-4o`]: { inputUsd: 1, outputUsd: 1 } }).has(model)).toBe(true);
});

test('every problem of the prices is named, with its model', () => {
  const problems = problemsOf(
    JSON.stringify({
      'gpt-5': { inputUsd: 1, outputUsd: 1 },
      'mistral/large': { inputUsd: 1, outputUsd: 1 },
      'openai/': { inputUsd: 1, outputUsd: 1 },
      'openai/gpt-*': { inputUsd: 1, outputUsd: 1 },
      'openai/a': { inputUsd: -1, outputUsd: '10' },
      'openai/b': { input: 1, outputUsd: 0.000_000_1 },
      'openai/c': 3,
      'openai/d': { inputUsd: 1, outputUsd: 1_000_001, cachedInputUsd: null },
      'openai/right': { inputUsd: 0.000_001, outputUsd: 1_000_000 },
    }),
  );
  const reasons = problems.map((problem) => /^("[^"]*") (.*?)(:|, | with |$)/.exec(problem)?.slice(1, 3).join(' '));
  expect(reasons).toEqual([
    '"gpt-5" is not a model',
    '"mistral/large" is not a model',
    '"openai/" is not a model',
    '"openai/gpt-*" has a * in the name',
    '"openai/a" has a wrong inputUsd',
    '"openai/a" has a wrong outputUsd',
    '"openai/b" has "input"',
    '"openai/b" has no inputUsd',
    '"openai/b" has a wrong outputUsd',
    '"openai/c" must be an object',
    '"openai/d" has a wrong cachedInputUsd',
    '"openai/d" has a wrong outputUsd',
  ]);
});

test.each(['{', '[]', '"x"', '{"openai/a":{"inputUsd":1e999,"outputUsd":1}}'])('%s is refused', (text) => {
  expect(problemsOf(text)).toHaveLength(1);
});

test('each problem is a line of the start, named by the variable', () => {
  expect(() => readConfig({}, { SIGNALBOX_MODEL_PRICES: '{"a":{"inputUsd":1,"outputUsd":1},"openai/b":{}}' })).toThrow(
    /^SIGNALBOX_MODEL_PRICES: "a" .*\nSIGNALBOX_MODEL_PRICES: "openai\/b" has no inputUsd\nSIGNALBOX_MODEL_PRICES: "openai\/b" has no outputUsd$/,
  );
});

test('costs that are added up come to what they are: a budget of 0.80 is used up by 0.70 and 0.10', () => {
  expect(0.7 + 0.1).toBeLessThan(0.8);
  expect(roundUsd(0.7 + 0.1)).toBe(0.8);
});
