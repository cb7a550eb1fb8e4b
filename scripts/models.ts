/**
 * Writes what is known about models, with its date, to packages/server/src/usage/known-models.json: context window, inputs, prices
 * and announced end. The sources are packages at exact versions, so the same versions give the same bytes.
 *
 *     npm run models     after a change of `sources`; `date` is the day on which the oldest of them was published
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type KnownModel,
  type KnownModels,
  knownModelsFile,
  type ModelPrice,
} from '../packages/server/src/usage/known-models.ts';

const sources = {
  '@earendil-works/pi-ai': '1.6.0',
  '@anthropic-ai/sdk': '1.14.0',
  openai: '7.59.0',
} as const;

const file = fileURLToPath(knownModelsFile);

interface Cost {
  input: number;
  output: number;
  cacheRead?: number;
  cacheWrite?: number;
  tiers?: readonly (Cost & { inputTokensAbove: number })[];
}

interface SourceModel {
  id: string;
  input: readonly string[];
  cost: Cost;
  contextWindow: number;
}

/** Announcements that no package has. Google's are on https://ai.google.dev/gemini-api/docs/deprecations. */
const announced: Readonly<Record<string, Pick<KnownModel, 'endsAt' | 'replacement'>>> = {
  'google/gemini-2.5-flash': { endsAt: '2026-12-01', replacement: 'gemini-3.5-flash-lite' },
};

/** A source has 0 for a part that has no price of its own. */
function priceOf({ input, output, cacheRead, cacheWrite }: Cost): ModelPrice {
  return {
    inputUsd: input,
    outputUsd: output,
    ...(cacheRead ? { cachedInputUsd: cacheRead } : {}),
    ...(cacheWrite ? { cacheWriteInputUsd: cacheWrite } : {}),
  };
}

/** The days by model, from the comment in the types of `openai`. */
export function endsOfOpenai(types: string): Record<string, string> {
  const text = types.replace(/\n \* ?/g, ' ').replace(/\s+/g, ' ');
  const ends: Record<string, string> = {};
  for (const [, names = '', day = ''] of text.matchAll(
    /((?:"[\w.-]+",? ?)+): Announced shutdown date: (\d{4}-\d\d-\d\d)/g,
  ))
    for (const [, name = ''] of names.matchAll(/"([\w.-]+)"/g)) ends[name] = day;
  return ends;
}

/** The days by model, from the table of `@anthropic-ai/sdk`, which has them as `January 22nd, 2027`. */
export function endsOfAnthropic(code: string): Record<string, string> {
  const ends: Record<string, string> = {};
  for (const [, name = '', month, day, year] of code.matchAll(/'([\w.-]+)': '(\w+) (\d+)\w*, (\d{4})'/g))
    ends[name] = new Date(`${month} ${day}, ${year} UTC`).toISOString().slice(0, 10);
  return ends;
}

function unpack(directory: string, name: string): (path: string) => string {
  const pack = [
    'pack',
    '--silent',
    '--pack-destination',
    directory,
    `${name}@${sources[name as keyof typeof sources]}`,
  ];
  const archive = execFileSync('npm', pack, { encoding: 'utf8' }).trim().split('\n').at(-1)!;
  return (path) =>
    execFileSync('tar', ['xzOf', join(directory, archive), `package/${path}`], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
}

function publishedOn(name: keyof typeof sources): string {
  const times = execFileSync('npm', ['view', name, 'time', '--json'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return (JSON.parse(times) as Record<string, string>)[sources[name]]!.slice(0, 10);
}

function readSources(directory: string): KnownModels {
  const facts = unpack(directory, '@earendil-works/pi-ai');
  const ends: Partial<Record<string, Record<string, string>>> = {
    openai: endsOfOpenai(unpack(directory, 'openai')('resources/shared.d.ts')),
    anthropic: endsOfAnthropic(unpack(directory, '@anthropic-ai/sdk')('internal/data/deprecated-models.js')),
  };
  const models: Record<string, KnownModel> = {};
  for (const provider of ['anthropic', 'google', 'openai']) {
    const byFormat = JSON.parse(facts(`dist/providers/data/${provider}.json`)) as Record<
      string,
      Record<string, SourceModel>
    >;
    for (const { id, input, cost, contextWindow } of Object.values(byFormat).flatMap((all) => Object.values(all))) {
      const tiers = cost.tiers?.map((tier) => ({ aboveInputTokens: tier.inputTokensAbove, ...priceOf(tier) }));
      models[`${provider}/${id}`] = {
        contextTokens: contextWindow,
        input,
        // 0 for both means that the source has no price, not that the model is free.
        price: cost.input + cost.output > 0 ? { ...priceOf(cost), ...(tiers ? { tiers } : {}) } : null,
        endsAt: ends[provider]?.[id] ?? null,
        ...announced[`${provider}/${id}`],
      };
    }
    // An old model may have no other facts; its end is one.
    for (const [id, endsAt] of Object.entries(ends[provider] ?? {}))
      models[`${provider}/${id}`] ??= { contextTokens: null, input: null, price: null, endsAt };
  }
  const names = Object.keys(sources) as (keyof typeof sources)[];
  const sorted = Object.fromEntries(Object.entries(models).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  return { date: names.map(publishedOn).toSorted()[0]!, sources, models: sorted };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-models-'));
  try {
    writeFileSync(file, `${JSON.stringify(readSources(directory), null, 2)}\n`);
  } finally {
    rmSync(directory, { recursive: true });
  }
  execFileSync(process.execPath, ['node_modules/@biomejs/biome/bin/biome', 'format', '--write', file], {
    stdio: 'inherit',
  });
}
