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
