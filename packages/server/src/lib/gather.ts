// Many small calls, few statements.

// Bounds the arrays of one statement, and with them how long it holds its locks.
const MAX_TOGETHER = 250;

/**
 * Calls that are made in one turn of the event loop, or while an earlier group is under way, travel as one group. `run`
 * answers each input at its own index; where it throws, every call of the group does. Under light load a call waits for
 * nothing, and under heavy load the groups grow by themselves.
 */
export function gather<In, Out>(run: (inputs: readonly In[]) => Promise<readonly Out[]>): (input: In) => Promise<Out> {
  const waiting: { input: In; resolve(output: Out): void; reject(error: unknown): void }[] = [];
  let running = false;

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const group = waiting.splice(0, MAX_TOGETHER);
      try {
        const outputs = await run(group.map(({ input }) => input));
        for (const [index, call] of group.entries()) call.resolve(outputs[index] as Out);
      } catch (error) {
        for (const call of group) call.reject(error);
      }
    }
    running = false;
  }

  return (input) => {
    const { promise, resolve, reject } = Promise.withResolvers<Out>();
    waiting.push({ input, resolve, reject });
    if (!running) {
      running = true;
      setImmediate(drain);
    }
    return promise;
  };
}
