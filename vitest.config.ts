import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'packages/*/test/**/*.test.ts',
      'examples/**/*.test.ts',
      'test/**/*.test.ts',
    ],
    globalSetup: ['packages/server/test/support/global-setup.ts'],
    setupFiles: ['packages/server/test/support/record-statements.ts'],
    // Processes rather than threads: tests change users, send signals and end processes.
    pool: 'forks',
    // PostgreSQL and the services under test need the machine too.
    maxWorkers: 2,
    // No test is about time; this only ends one that hangs, on a machine that may be slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
