// Turns many small calls into few statements.

// Bounds the arrays of a statement, and thereby how long it keeps its locks.
const MAX_GROUP = 250;

export interface GatherOptions {
  /** Whether a group starts while an earlier one is still running. */
  isConcurrent?: boolean;
}

/**
 * Groups the calls of one turn of the event loop and those made while an earlier group is running. `run` returns an output, or a
 * promise of one, for each input, at its index. If `run` rejects, every call of its group does. Under light load a call waits for
 * nothing; under heavy load the groups get larger by themselves.
 */
export function gather<In, Out>(
  run: (inputs: readonly In[]) => Promise<readonly (Out | Promise<Out>)[]>,
  { isConcurrent = false }: GatherOptions = {},
): (input: In) => Promise<Out> {
  const waiting: { input: In; resolve(output: Out | Promise<Out>): void; reject(error: unknown): void }[] = [];
  let isScheduled = false;

  async function runGroup(group: typeof waiting): Promise<void> {
    try {
      const outputs = await run(group.map(({ input }) => input));
      for (const [index, call] of group.entries()) call.resolve(outputs[index] as Out);
    } catch (error) {
      for (const call of group) call.reject(error);
    }
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const done = runGroup(waiting.splice(0, MAX_GROUP));
      if (!isConcurrent) await done;
    }
    isScheduled = false;
  }

  return (input) => {
    const { promise, resolve, reject } = Promise.withResolvers<Out>();
    waiting.push({ input, resolve, reject });
    if (!isScheduled) {
      isScheduled = true;
      setImmediate(drain);
    }
    return promise;
  };
}
