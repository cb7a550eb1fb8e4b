/**
 * Work that handles everything there is to do, such as reading all that changed. Calls during a run share one further run
 * afterwards, because the current run may have read too early. A call resolves, or rejects, with the run that started at or after it.
 */
export function coalesced(act: () => Promise<void>): () => Promise<void> {
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
