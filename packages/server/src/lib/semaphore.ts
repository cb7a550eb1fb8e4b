/** Limits how much runs at once. Those that wait enter in the order in which they came. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(maxAtOnce: number) {
    this.#free = maxAtOnce;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Resolves when there is room. Call `release` once afterwards. */
  async acquire(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((enter) => this.#waiting.push(enter));
  }

  release(): void {
    // Handed to the next in line directly, so a newcomer can't overtake it.
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }

  /** Calls `work` at once if there is room. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.acquire();
    try {
      return await work();
    } finally {
      this.release();
    }
  }
}
