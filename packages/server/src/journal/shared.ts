/** Values that many hold at the same time: each is kept once, for as long as anything uses it. */
export interface Shared<T> {
  /** `make` is called unless the value is in use already. */
  hold(key: string, make: () => T): T;
  /** Once for each `hold`. */
  release(key: string): void;
}

export function createShared<T>(): Shared<T> {
  const held = new Map<string, { value: T; holders: number }>();
  return {
    hold(key, make) {
      const entry = held.get(key) ?? { value: make(), holders: 0 };
      entry.holders += 1;
      held.set(key, entry);
      return entry.value;
    },
    release(key) {
      const entry = held.get(key)!;
      entry.holders -= 1;
      if (entry.holders === 0) held.delete(key);
    },
  };
}
