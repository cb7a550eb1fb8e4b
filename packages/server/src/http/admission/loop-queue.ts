// A queue for costly work on the event loop. Reading a body, checking it and writing a response take up to some hundred milliseconds
// each, and one poll of the sockets may bring many of them. Those that fit into a few milliseconds run at once; between the others
// the event loop continues with everything else. Organizations take turns, so a caller with many requests waits for its own.

export interface LoopQueue {
  /** Undefined if the work of this organization or address may run now; otherwise resolves when it may. */
  next(who: string): Promise<void> | undefined;
}

/** For the work of one iteration of the event loop. The last piece may take longer. */
const TURN_MS = 5;

export function createLoopQueue(): LoopQueue {
  /** The organization or address that has waited longest is first. */
  const waiting = new Map<string, (() => void)[]>();
  let isRunning = false;
  /** When the first work of this iteration began. */
  let began: number | undefined;

  /** Whether work may run now. If this iteration has no time left, `proceed` is called in the next one. */
  function hasBudget(): boolean {
    if (began === undefined) {
      began = performance.now();
      setImmediate(() => {
        began = undefined;
        proceed();
      });
    }
    return !isRunning && performance.now() - began < TURN_MS;
  }

  function run(): void {
    isRunning = true;
    // A tick requested by a microtask runs once all current work is waiting for something else.
    queueMicrotask(() =>
      process.nextTick(() => {
        isRunning = false;
        proceed();
      }),
    );
  }

  function proceed(): void {
    const [first] = waiting;
    if (!first || !hasBudget()) return;
    const [who, [resolve, ...others]] = first;
    waiting.delete(who);
    if (others.length > 0) waiting.set(who, others);
    resolve!();
    run();
  }

  return {
    next(who) {
      if (waiting.size === 0 && hasBudget()) {
        run();
        return undefined;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      const own = waiting.get(who);
      if (own) own.push(resolve);
      else waiting.set(who, [resolve]);
      return promise;
    },
  };
}
