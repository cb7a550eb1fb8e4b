// The classes of requests that the operator can limit for each key.

/** Each is counted separately. `tokens`: requests with session tokens, which count as none of the others. */
export const rateClasses = ['reads', 'writes', 'keys', 'tokens'] as const;
export type RateClass = (typeof rateClasses)[number];

/** Requests a minute. A class that is not listed has no limit, except `tokens`, whose limit is then `defaultOfTokens`. */
export type RateLimits = Readonly<Partial<Record<RateClass, number>>>;

/** Enough for a page with its live stream. */
export const defaultOfTokens = 60;
