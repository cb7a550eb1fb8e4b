// Few providers report how many tokens they wrote to their cache.
import type { Usage } from '@signalbox/contract';

/** The field of a usage; left out if nothing was written. */
export function cacheWrites(cacheWriteTokens: number): Pick<Usage, 'cacheWriteTokens'> {
  return cacheWriteTokens > 0 ? { cacheWriteTokens } : {};
}
