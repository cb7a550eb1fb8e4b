import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Model } from '@signalbox/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readConfig } from '../config/config.ts';
import { createPrices, modelName, parsePrices, roundUsd } from './prices.ts';

const million = { inputTokens: 1_000_000, outputTokens: 0, cachedTokens: 0 };

function problemsOf(text: string): string[] {
  try {
    parsePrices(text);
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
  expect(prices.costOf('openai/gpt-5', million)).toBe(2);
  expect(prices.costOf('openai/gpt-5-mini', million)).toBe(1);
  expect(prices.costOf('openai/org/other', million)).toBe(1);
  expect(prices.costOf('openai-compatible/gpt-5', million)).toBeNull();
  expect(['openai/gpt-5', 'openai/x', 'openai-compatible/gpt-5', 'constructor'].map(prices.has)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test('cached tokens are among the input tokens, at their own price or that of the others', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000 };
  const cost = (cachedInputUsd?: number) =>
    createPrices({
      'openai/a': { inputUsd: 10, outputUsd: 50, ...(cachedInputUsd !== undefined && { cachedInputUsd }) },
    }).costOf('openai/a', usage);
  expect(cost(1)).toBe(6 + 0.4 + 5);
  expect(cost(0)).toBe(11);
  expect(cost()).toBe(15);
});

test('tokens that are written to the cache are among the input tokens, at their own price or that of the others', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 400_000, cacheWriteTokens: 500_000, outputTokens: 0 };
  const cost = (price: { cachedInputUsd?: number; cacheWriteInputUsd?: number }) =>
    createPrices({ 'openai/a': { inputUsd: 10, outputUsd: 50, ...price } }).costOf('openai/a', usage);
  expect(cost({ cachedInputUsd: 1, cacheWriteInputUsd: 12.5 })).toBe(1 + 0.4 + 6.25);
  expect(cost({ cachedInputUsd: 1 })).toBe(6 + 0.4);
  expect(cost({})).toBe(10);
  // A server that counts wrongly does not make the cost negative.
  const wrong = { ...usage, cacheWriteTokens: 9_000_000 };
  const free = createPrices({ 'openai/a': { inputUsd: 10, cacheWriteInputUsd: 0, outputUsd: 0 } });
  expect(free.costOf('openai/a', wrong)).toBe(4);
  expect(
    parsePrices('{"openai/a":{"inputUsd":1,"cacheWriteInputUsd":2,"outputUsd":0}}').costOf('openai/a', usage),
  ).toBe(1.5);
});

test('a price of nothing is a price', () => {
  const prices = parsePrices('{"openai-compatible/*":{"inputUsd":0,"outputUsd":0}}');
  expect(prices.costOf('openai-compatible/x', million)).toBe(0);
  expect(prices.has('openai-compatible/x')).toBe(true);
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
      const cost = prices.costOf('openai/a', { inputTokens: fresh + read, cachedTokens: read, outputTokens: written })!;
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
  expect(prices.costOf('openai/a', { inputTokens: 1_000_000, cachedTokens: 9_000_000, outputTokens: 0 })).toBe(1);
});

test('a file of prices is read, also with the mark that some editors put before a text', () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-prices-'));
  const file = join(directory, 'prices.json');
  writeFileSync(file, '\uFEFF{"openai/gpt-5":{"inputUsd":1.25,"outputUsd":10}}\n');
  expect(readConfig({}, { SIGNALBOX_MODEL_PRICES: file }).prices.costOf('openai/gpt-5', million)).toBe(1.25);
  rmSync(directory, { recursive: true });
  expect(problemsOf(file)).toEqual([expect.stringContaining('ENOENT')]);
});

test('without prices nothing has a cost', () => {
  expect(readConfig({}, {}).prices.costOf('openai/gpt-5', million)).toBeNull();
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
