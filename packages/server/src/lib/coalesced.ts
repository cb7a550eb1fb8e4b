// Work that looks at everything there is to do: asked for while it runs, it runs once more afterwards, however often it was
// asked, since what was seen may have been too early.

/** Resolves, or rejects, with the run that began last before or after the call. */
export function onceMore(act: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function run(): Promise<void> {
    next = undefined;
    running = act().finally(() => {
      running = undefined;
    });
    return running;
  }

  return () => {
    if (next) return next;
    if (!running) return run();
    next = running.then(run, run);
    return next;
  };
}
