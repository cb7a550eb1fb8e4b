// Numbers that the same seed gives again.

export interface Random {
  /** From 0 up to the number, whole. */
  below(limit: number): number;
  /** True in so many of 1. */
  chance(share: number): boolean;
  pick<T>(of: readonly T[]): T;
  /** An independent sequence, which other draws do not change. */
  fork(): Random;
}

/** mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }
  return {
    below: (limit) => Math.floor(next() * limit),
    chance: (share) => next() < share,
    pick: (of) => of[Math.floor(next() * of.length)]!,
    fork: () => createRandom(Math.floor(next() * 2 ** 32)),
  };
}
