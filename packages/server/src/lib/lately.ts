// What happened in the last seconds: values by key, forgotten between one and two times `ms` after they were last added. There are no
// timers: all that was added in the same time is dropped at once, by the first use after it.
import type { Clock } from './clock.ts';

type Half<V> = Map<string, Set<V>>;

export class Lately<V> {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #ms: number;
  #young: Half<V> = new Map();
  #old: Half<V> = new Map();
  #since: number;

  constructor(clock: Pick<Clock, 'now'>, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#since = clock.now().getTime();
  }

  add(key: string, value: V): void {
    this.#age();
    const values = this.#young.get(key);
    if (values) values.add(value);
    else this.#young.set(key, new Set([value]));
  }

  has(key: string, value: V): boolean {
    this.#age();
    return this.#young.get(key)?.has(value) === true || this.#old.get(key)?.has(value) === true;
  }

  /** The values of a key, each once. */
  of(key: string): readonly V[] {
    this.#age();
    const [young, old] = [this.#young.get(key), this.#old.get(key)];
    if (!young && !old) return [];
    return [...new Set([...(young ?? []), ...(old ?? [])])];
  }

  #age(): void {
    const now = this.#clock.now().getTime();
    const age = now - this.#since;
    if (age < this.#ms) return;
    this.#old = age < 2 * this.#ms ? this.#young : new Map();
    this.#young = new Map();
    this.#since = now;
  }
}
