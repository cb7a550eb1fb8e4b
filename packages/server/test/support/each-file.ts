// A process runs one test file after another (vitest.config.ts), so each leaves the process as it found it.
import { afterAll, afterEach, vi } from 'vitest';
import { endFile } from './at-file-end.ts';
import { takeLastLines } from './last-lines.ts';

// After the hooks of the file itself.
afterEach(({ task }) => {
  const lines = takeLastLines();
  if (task.result?.state !== 'fail' || lines.length === 0) return;
  console.error(`The last log lines before "${task.name}" failed:\n${lines.map((line) => line.trimEnd()).join('\n')}`);
});

afterAll(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.resetConfig();
  await endFile();
});
