/** What the model of a step used. */
import type { WorkerUsage } from '../types.generated.ts';

/** Throws a TypeError. Called when usage is reported, not at the end of the step, so that the stack trace shows the line that counts wrongly. */
export function checkUsage({ costUsd = 0, cachedTokens = 0, cacheWriteTokens = 0, ...required }: WorkerUsage): void {
  for (const [name, tokens] of Object.entries({ ...required, cachedTokens, cacheWriteTokens })) {
    if (!(Number.isSafeInteger(tokens) && tokens >= 0))
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
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: (one.cachedTokens ?? 0) + (other.cachedTokens ?? 0),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...costUsd,
  };
}
