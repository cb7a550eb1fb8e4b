// What is known about the models of providers with their own API: window, inputs, prices and announced end, with the date of the
// data. scripts/models.ts writes it from published packages; nothing is requested at run time.
import { readFileSync } from 'node:fs';
import { isServerOf, type Model, ownProvider } from '@signalbox/contract';
import { dataFile } from '../lib/files/code-file.ts';

/** In US dollars per million tokens, with at most six decimals. */
export interface ModelPrice {
  inputUsd: number;
  /** For input tokens that the provider had cached. Default: the price of other input tokens. */
  cachedInputUsd?: number;
  /** For the input tokens that were written to the provider's cache. Default: as above. */
  cacheWriteInputUsd?: number;
  outputUsd: number;
  /** For one search of the web that the provider runs. Default: 0. The built-in prices have none. */
  webSearchUsd?: number;
}

export interface KnownModel {
  /** As the source has it: for some models of OpenAI only the part that is not in a dearer tier. */
  contextTokens: number | null;
  input: readonly string[] | null;
  /** `tiers`: the prices of all tokens of a call with more input tokens than `aboveInputTokens`. Null if unknown. */
  price: (ModelPrice & { tiers?: (ModelPrice & { aboveInputTokens: number })[] }) | null;
  /** The announced day, such as `2026-12-11`; null if none is announced. */
  endsAt: string | null;
  /** The model that the provider names in its place, if it does. */
  replacement?: string;
}

export interface KnownModels {
  /** The day on which the oldest of the sources was published. */
  date: string;
  /** The versions of the packages. */
  sources: Readonly<Record<string, string>>;
  /** By `provider/model`. */
  models: Readonly<Record<string, KnownModel>>;
}

export const knownModelsFile = dataFile('usage/known-models.json');

let read: KnownModels | undefined;

/** Read when it is first used. */
export function knownModels(): KnownModels {
  read ??= JSON.parse(readFileSync(knownModelsFile, 'utf8')) as KnownModels;
  return read;
}

/** What decides who is paid for a call. */
export type CalledModel = Pick<Model, 'provider' | 'model' | 'queue' | 'baseUrl'>;

/**
 * Under which names the model may be known, the most exact first; none if another server than the provider's own is called, which has
 * prices, and perhaps models, of its own.
 */
export function knownNames(model: CalledModel): string[] {
  const address = URL.parse(model.baseUrl ?? ownProvider(model.provider)?.baseUrl ?? '');
  if (address === null || !isServerOf(model.provider, address)) return [];
  // Google accepts a name with its collection.
  const name = `${model.provider}/${(model.model ?? '').replace(/^models\//, '')}`;
  // The provider's name of a fixed version is that of the model with a day.
  const undated = name.replace(/-(\d{4}-\d\d-\d\d|\d{8})$/, '');
  return undated === name ? [name] : [name, undated];
}

/** What is announced for the model, as far as it is known. */
export function announcedEnd(model: CalledModel): { endsAt: string | null; replacement: string | null } {
  const { models } = knownModels();
  const known = knownNames(model).flatMap((name) => models[name] ?? []);
  const { endsAt = null, replacement = null } = known.find((one) => one.endsAt !== null) ?? {};
  return { endsAt, replacement };
}
