/** What the model of a step used. */
import type { WorkerUsage } from '../types.generated.ts';

/** Throws a TypeError. Called when usage is reported, not at the end of the step, so that the stack trace shows the line that counts wrongly. */
export function checkUsage(usage: WorkerUsage): void {
  const { costUsd = 0, cachedTokens = 0, cacheWriteTokens = 0, webSearches = 0, ...required } = usage;
  for (const [name, count] of Object.entries({ ...required, cachedTokens, cacheWriteTokens, webSearches })) {
    if (!(Number.isSafeInteger(count) && count >= 0))
      throw new TypeError(`usage: ${name} must be a whole number, 0 or more`);
  }
  if (!(Number.isFinite(costUsd) && costUsd >= 0)) throw new TypeError('usage: costUsd must be a number, 0 or more');
}

export function sumOf(one: WorkerUsage | undefined, other: WorkerUsage): WorkerUsage {
  if (!one) return other;
  const costUsd =
    one.costUsd === undefined && other.costUsd === undefined
      ? {}
      : { costUsd: (one.costUsd ?? 0) + (other.costUsd ?? 0) };
  const cacheWriteTokens = (one.cacheWriteTokens ?? 0) + (other.cacheWriteTokens ?? 0);
  const webSearches = (one.webSearches ?? 0) + (other.webSearches ?? 0);
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: (one.cachedTokens ?? 0) + (other.cachedTokens ?? 0),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...(webSearches > 0 && { webSearches }),
    ...costUsd,
  };
}
