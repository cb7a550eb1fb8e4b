// The newest log lines of the services that a process tests, for a test that fails: what it waited for may be in them.
const MAX_LINES = 60;
const here = globalThis as { signalboxLastLines?: string[] };

export function keepLine(line: string): void {
  here.signalboxLastLines ??= [];
  here.signalboxLastLines.push(line);
  if (here.signalboxLastLines.length > MAX_LINES) here.signalboxLastLines.shift();
}

/** The lines since this was last called. */
export function takeLastLines(): string[] {
  return here.signalboxLastLines?.splice(0) ?? [];
}
