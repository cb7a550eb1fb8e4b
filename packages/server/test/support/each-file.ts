// A process runs one test file after another (vitest.config.ts), so each leaves the process as it found it.
import { afterAll, afterEach, vi } from 'vitest';
import { processorMs } from '../../../../scripts/processor-time.ts';
import { endFile } from './at-file-end.ts';
import { makeHashesCheap } from './cheap-hashes.ts';
import { takeLastLines } from './last-lines.ts';

const here = globalThis as { signalboxProcessorMs?: number };

// The first hook is called last, and so counts the others. The first file of a process has the time of its start.
// biome-ignore lint/correctness/noEmptyPattern: vitest accepts only a pattern as the first parameter.
afterAll(({}, file) => {
  const ms = processorMs();
  if (ms === undefined) return;
  // Without a browser that ended by being killed together with its children, it can be less.
  file.meta.processorMs = Math.max(0, ms - (here.signalboxProcessorMs ?? 0));
  here.signalboxProcessorMs = ms;
});

makeHashesCheap();

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
