// Turns of the event loop. Reading a body, checking it and writing an answer take up to some hundred milliseconds each, and a poll
// of the sockets may bring many of them at once. So they take turns: those that fit into a few milliseconds go at once, and
// between the others the loop goes round, and everything else goes on. Whoever has sent many waits for their own.

export interface LoopQueue {
  /** Undefined, or resolves, when the work of this organization or address may go on. */
  next(who: string): Promise<void> | undefined;
}

/** For what goes in one turn of the loop. The last of it may take longer. */
const TURN_MS = 5;

export function createLoopQueue(): LoopQueue {
  /** Who has waited longest is first. */
  const waiting = new Map<string, (() => void)[]>();
  let isGoing = false;
  /** When the first of this turn of the loop began. */
  let began: number | undefined;

  /** Whether one may go. If this turn of the loop has no time for it, `goOn` is called in the next. */
  function mayGo(): boolean {
    if (began === undefined) {
      began = performance.now();
      setImmediate(() => {
        began = undefined;
        goOn();
      });
    }
    return !isGoing && performance.now() - began < TURN_MS;
  }

  function go(): void {
    isGoing = true;
    // A tick that a microtask asks for comes when all that goes on now has come to wait for something else.
    queueMicrotask(() =>
      process.nextTick(() => {
        isGoing = false;
        goOn();
      }),
    );
  }

  function goOn(): void {
    const [first] = waiting;
    if (!first || !mayGo()) return;
    const [who, [resolve, ...others]] = first;
    waiting.delete(who);
    if (others.length > 0) waiting.set(who, others);
    resolve!();
    go();
  }

  return {
    next(who) {
      if (waiting.size === 0 && mayGo()) {
        go();
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
