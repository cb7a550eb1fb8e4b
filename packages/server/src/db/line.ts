// Callers that wait for a connection. Organizations take turns, as at the event loop (http/admission/loop-queue.ts): one with hundreds of
// requests waits for its own, and another for at most one request of each that waits. Every second turn is the service's.

/** `who`: the organization; undefined for work of the service that is not of one, such as a commit that several share. */
export interface InLine {
  readonly who: string | undefined;
}

export class Line<T extends InLine> {
  /** By organization; the one that has waited longest for its turn is first. */
  readonly #of = new Map<string, T[]>();
  readonly #service: T[] = [];
  #isServiceNext = true;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(one: T): void {
    const own = one.who === undefined ? this.#service : this.#of.get(one.who);
    if (own) own.push(one);
    else this.#of.set(one.who!, [one]);
    this.#length += 1;
  }

  /** The next one; undefined if there is none, or none whose organization `mayHave` it. */
  shift(mayHave: (organizationId: string) => boolean): T | undefined {
    const first =
      (this.#isServiceNext ? this.#service.shift() : undefined) ??
      this.#shiftOrganization(mayHave) ??
      this.#service.shift();
    if (!first) return undefined;
    this.#isServiceNext = first.who !== undefined;
    this.#length -= 1;
    return first;
  }

  #shiftOrganization(mayHave: (organizationId: string) => boolean): T | undefined {
    for (const [organizationId, own] of this.#of) {
      if (!mayHave(organizationId)) continue;
      const first = own.shift();
      // Its next turn is after that of all others.
      this.#of.delete(organizationId);
      if (own.length > 0) this.#of.set(organizationId, own);
      return first;
    }
    return undefined;
  }

  delete(one: T): void {
    const own = one.who === undefined ? this.#service : this.#of.get(one.who);
    const index = own?.indexOf(one) ?? -1;
    if (index < 0) return;
    own!.splice(index, 1);
    if (one.who !== undefined && own!.length === 0) this.#of.delete(one.who);
    this.#length -= 1;
  }

  /** Removes and returns all. */
  clear(): T[] {
    const all = [...this.#service.splice(0), ...[...this.#of.values()].flat()];
    this.#of.clear();
    this.#length = 0;
    return all;
  }
}
