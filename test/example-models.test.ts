// Providers retire models. One table says which model is suggested for each provider, and every text names that one.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { modelFacts, ownProviders, type ProviderName } from '@signalbox/contract';
import { describe, expect, test } from 'vitest';
import { knownModels } from '../packages/server/src/usage/known-models.ts';
import { facts, modelNames, textFiles, withExampleModels } from '../scripts/example-models.ts';
import { endsOfAnthropic, endsOfOpenai } from '../scripts/models.ts';
import { root } from './sources.ts';

const read = (file: string) => readFileSync(join(root, file), 'utf8');

test('documentation, examples, templates and help name only the suggested models: npm run generate writes them', () => {
  const files = textFiles();
  for (const file of [
    'README.md',
    'openapi.json',
    'packages/client/SKILL.md',
    'packages/create-signalbox/src/providers.ts',
  ]) {
    expect(files).toContain(file);
  }
  const found = files.flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((line, at) =>
        withExampleModels(line) === line ? [] : [`${file}:${at + 1}: ${line.trim().slice(0, 200)}`],
      ),
  );
  expect(found).toEqual([]);
});

test('the names of models are recognized in any text, and nothing else is', () => {
  for (const { name, exampleModel } of ownProviders) {
    expect(exampleModel.match(modelNames[name]!), name).toEqual([exampleModel]);
    expect(withExampleModels(exampleModel)).toBe(exampleModel);
  }
  const [openai, anthropic, google] = ['openai', 'anthropic', 'google'].map(
    (provider) => ownProviders.find(({ name }) => name === provider)!.exampleModel,
  );
  const names =
    'Use gpt-4.1, "o3" or openai/o4-mini-2025-04-16. (chatgpt-4o-latest) claude-3-5-haiku-20241022, gemini-2.5-pro.';
  expect(withExampleModels(names)).toBe(
    `Use ${openai}, "${openai}" or openai/${openai}. (${openai}) ${anthropic}, ${google}.`,
  );
  const others =
    'gpt-oss:20b, my-gpt-4, o2 and o3 are sums; gcp.gemini, platform.claude.com, llama-3, node_modules/o1.';
  expect(withExampleModels(others)).toBe(others);
});

test('the installed SDK of each provider knows the suggested model, so it leaves out settings that the model refuses', () => {
  const require = createRequire(join(root, 'packages/server/package.json'));
  for (const { name, exampleModel } of ownProviders) {
    const types = require.resolve(`@ai-sdk/${name}`).replace(/\.m?js$/, '.d.ts');
    expect(readFileSync(types, 'utf8')).toMatch(new RegExp(`['"]${exampleModel.replaceAll('.', '\\.')}['"]`));
  }
});

test('every file that is left out has a name that the table does not have', () => {
  expect(Object.keys(facts).filter((file) => withExampleModels(read(file)) === read(file))).toEqual([]);
});

describe('the data of npm run models', () => {
  const { date, models } = knownModels();

  test('no suggested model ends within 60 days of the date of the data, and each has a price', () => {
    const until = new Date(Date.parse(date) + 60 * 86_400_000).toISOString().slice(0, 10);
    for (const { name, exampleModel } of ownProviders) {
      const { endsAt, price } = models[`${name}/${exampleModel}`]!;
      expect(endsAt === null || endsAt > until, `${name}/${exampleModel} ends on ${endsAt}`).toBe(true);
      expect(price, exampleModel).toMatchObject({ inputUsd: expect.any(Number), outputUsd: expect.any(Number) });
    }
  });

  test('agrees with the table that the service and the console use, except where the data leaves out a dearer tier', () => {
    /** With these, the data has only the part of the window that costs less; OpenAI takes 1,050,000 tokens. */
    const upToDearerTier = 272_000;
    const facts = Object.entries(models).flatMap(([name, { contextTokens, input }]) => {
      const [, provider, model] = /^([^/]*)\/(.*)$/.exec(name)!;
      return contextTokens === null || input === null
        ? []
        : [{ name, known: modelFacts({ provider: provider as ProviderName, model: model! }), contextTokens, input }];
    });
    expect(facts.length).toBeGreaterThan(50);
    /** It takes text only, whatever the data says. */
    const textOnly = 'openai/gpt-5.3-codex-spark';
    const tokensOf = (tokens: number) => (tokens === upToDearerTier ? 1_050_000 : tokens);
    const wrong = facts.filter(
      ({ name, known, contextTokens, input }) =>
        known.contextTokens !== tokensOf(contextTokens) ||
        known.input?.includes('image') !== (input.includes('image') && name !== textOnly),
    );
    expect(
      wrong.map(({ name, known, contextTokens }) => `${name}: ${known.contextTokens}, not ${contextTokens}`),
    ).toEqual([]);
  });

  test('has days, names in order, and prices that the service accepts', () => {
    const days = [date, ...Object.values(models).flatMap(({ endsAt }) => endsAt ?? [])];
    expect(days.filter((day) => new Date(day).toISOString().slice(0, 10) !== day)).toEqual([]);
    expect(Object.keys(models)).toEqual(Object.keys(models).toSorted());
    const prices = Object.values(models).flatMap(({ price }) => (price ? [price, ...(price.tiers ?? [])] : []));
    const amounts = prices.flatMap(({ inputUsd, outputUsd, cachedInputUsd = 0, cacheWriteInputUsd = 0 }) => [
      inputUsd,
      outputUsd,
      cachedInputUsd,
      cacheWriteInputUsd,
    ]);
    // At most six decimals, as a price of the operator.
    expect(amounts.filter((usd) => !(usd >= 0) || Math.abs(usd * 1e6 - Math.round(usd * 1e6)) > 1e-6)).toEqual([]);
  });

  test('the announced ends are read from the lists of the SDKs, across the ends of lines', () => {
    const comment = ` * - "gpt-a", "gpt-b-2026-01-02",
 *   "gpt-c": Announced shutdown date: 2026-07-23. See
 *   https://example.com for details.
 * - "gpt-d": Not a supported model ID.
 * - "o1": Announced shutdown
 *   date: 2027-01-14. See`;
    expect(endsOfOpenai(comment)).toEqual({
      'gpt-a': '2026-07-23',
      'gpt-b-2026-01-02': '2026-07-23',
      'gpt-c': '2026-07-23',
      o1: '2027-01-14',
    });
    const table = "'claude-a': 'January 22nd, 2027',\n'claude-b-20250929': 'November 3rd, 2026',";
    expect(endsOfAnthropic(table)).toEqual({ 'claude-a': '2027-01-22', 'claude-b-20250929': '2026-11-03' });
  });
});
