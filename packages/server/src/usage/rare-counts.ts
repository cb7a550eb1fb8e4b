// Few providers report how many tokens they wrote to their cache, and few calls search the web.
import type { Usage } from '@signalbox/contract';

type RareCounts = Pick<Usage, 'cacheWriteTokens' | 'webSearches'>;

/** These fields of a usage; left out if there are none. */
export function rareCounts({ cacheWriteTokens = 0, webSearches = 0 }: RareCounts): RareCounts {
  return { ...(cacheWriteTokens > 0 && { cacheWriteTokens }), ...(webSearches > 0 && { webSearches }) };
}
