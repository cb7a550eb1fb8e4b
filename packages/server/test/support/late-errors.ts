// Errors that no test awaits, such as those that a page of a browser throws: thrown in an event handler, they would fail the run
// without the name of a test, and it could not be repeated.
const here = globalThis as { signalboxLateErrors?: unknown[] };

/** Fails the test that runs, at its end; after the last one, its file. */
export function failLater(error: unknown): void {
  here.signalboxLateErrors ??= [];
  here.signalboxLateErrors.push(error);
}

export function throwLateErrors(): void {
  const [error] = here.signalboxLateErrors?.splice(0) ?? [];
  if (error !== undefined) throw error;
}
