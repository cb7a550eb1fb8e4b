// The classes of requests that the operator can limit for each key.

/** Each is counted separately. */
export const rateClasses = ['reads', 'writes', 'keys'] as const;
export type RateClass = (typeof rateClasses)[number];

/** Requests a minute. A class that is not listed has no limit. */
export type RateLimits = Readonly<Partial<Record<RateClass, number>>>;
