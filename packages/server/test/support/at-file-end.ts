// A process runs one test file after another and imports each module once (vitest.config.ts), so a hook at the top of a support module
// would run for the first file only.
const here = globalThis as { signalboxFileEnd?: Set<() => unknown> };

/** Calls this after each test file that the process still runs, in the reverse order of the calls. */
export function atFileEnd(act: () => unknown): void {
  here.signalboxFileEnd ??= new Set();
  here.signalboxFileEnd.add(act);
}

/** For the setup of each test file. All are called, even if one fails. */
export async function endFile(): Promise<void> {
  const errors: unknown[] = [];
  for (const act of [...(here.signalboxFileEnd ?? [])].reverse()) {
    try {
      await act();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
