// What a response used, as its provider counts it.
import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import type { TokenUsage } from '../../session-rows/operations.ts';
import { rareCounts } from '../../usage/rare-counts.ts';

export const NOTHING_USED: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/** Zero if the server does not report it. `webSearches`: as the response says. */
export function usageOf({ inputTokens, outputTokens }: LanguageModelV4Usage, webSearches: number): TokenUsage {
  return {
    inputTokens: countOf(inputTokens.total),
    outputTokens: countOf(outputTokens.total),
    cachedTokens: countOf(inputTokens.cacheRead),
    ...rareCounts({ cacheWriteTokens: countOf(inputTokens.cacheWrite), webSearches: searchesOf(webSearches) }),
  };
}

/** No call uses more than this. A server that reports more would distort the session's totals. */
const TOKENS_MAX = 1_000_000_000;

function countOf(tokens: number | undefined): number {
  return tokens !== undefined && Number.isInteger(tokens) && tokens >= 0 && tokens <= TOKENS_MAX ? tokens : 0;
}

/** No response has more. */
const SEARCHES_MAX = 1_000_000;

function searchesOf(count: number): number {
  return Number.isInteger(count) && count > 0 ? Math.min(count, SEARCHES_MAX) : 0;
}

/** The usage of two responses together. */
export function sumOf(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    ...rareCounts({
      cacheWriteTokens: (one.cacheWriteTokens ?? 0) + (other.cacheWriteTokens ?? 0),
      webSearches: (one.webSearches ?? 0) + (other.webSearches ?? 0),
    }),
  };
}
