// A process runs one test file after another (vitest.config.ts), so each leaves the process as it found it.
import { afterAll, vi } from 'vitest';
import { endFile } from './at-file-end.ts';

afterAll(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.resetConfig();
  await endFile();
});
