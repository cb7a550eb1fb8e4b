// Random numbers that the same seed repeats.

export interface Random {
  /** An integer from 0 up to, but not including, the number. */
  below(limit: number): number;
  /** True with this probability, from 0 to 1. */
  chance(share: number): boolean;
  pick<T>(of: readonly T[]): T;
  /** An independent sequence, unaffected by other draws. */
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
