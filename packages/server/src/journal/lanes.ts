// How many writes of a shard are under way.
import type { Shard } from '../db/shards.ts';

/** A kind of writes, of which each shard has at most `max` under way. */
export interface Lane {
  max: number;
  underWay: Map<Shard | undefined, Set<Promise<void>>>;
}

export function newLane(max: number): Lane {
  return { max, underWay: new Map() };
}

export function roomOf({ max, underWay }: Lane, shard: Shard | undefined): number {
  return max - (underWay.get(shard)?.size ?? 0);
}
