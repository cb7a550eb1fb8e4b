/** Calls `fn` when the signal is aborted, at once if it already is: a listener that is added later never hears it. Returns how to
 * take that back. */
export function onceAborted(signal: AbortSignal, fn: () => void): () => void {
  if (signal.aborted) {
    fn();
    return () => {};
  }
  signal.addEventListener('abort', fn, { once: true });
  return () => signal.removeEventListener('abort', fn);
}

/** What the promise comes to, or the signal's reason, whichever is first. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const forget = onceAborted(signal, () => aborted.reject(signal.reason));
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    forget();
  }
}
