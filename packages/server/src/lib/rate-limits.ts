// What requests are counted by, where the operator limits how many a key may make.

/** Counted apart from one another. */
export const rateClasses = ['reads', 'writes', 'keys'] as const;
export type RateClass = (typeof rateClasses)[number];

/** Requests a minute; what is absent has no limit. */
export type RateLimits = Readonly<Partial<Record<RateClass, number>>>;
