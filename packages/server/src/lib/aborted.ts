/**
 * The reason of a signal whose listeners only stop. An `abort` without a reason creates a DOMException with its stack, which costs
 * 10 µs: a session aborts five signals.
 */
export const OVER: Error = Object.assign(new Error('over'), { name: 'AbortError' });

/**
 * Calls `fn` when the signal is aborted; immediately if it already is, because a listener added afterwards would never be called.
 * Returns a function that removes the listener.
 */
export function onceAborted(signal: AbortSignal, fn: () => void): () => void {
  if (signal.aborted) {
    fn();
    return () => {};
  }
  signal.addEventListener('abort', fn, { once: true });
  return () => signal.removeEventListener('abort', fn);
}

/** The result of the promise, unless the signal is aborted first: then rejects with its reason. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const forget = onceAborted(signal, () => aborted.reject(signal.reason));
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    forget();
  }
}
