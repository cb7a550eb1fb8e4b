import { defineConfig } from 'vitest/config';

// Where a test file is says what it needs; CONTRIBUTING.md has the table.
const beside = ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'];
const server = ['packages/server/test/**/*.test.ts', 'packages/server/src/{db,journal,wake}/**/*.test.ts'];
// Installing everything from the registry takes minutes: `npm run prove -- install images`.
const delivered = 'test/deploy/delivered/*.test.ts';
const processTests = [
  'packages/cli/test/**/*.test.ts',
  ...(process.env.SIGNALBOX_INSTALLS ? ['proofs/**/*.test.ts', delivered] : ['proofs/!(install).test.ts']),
  'test/site.test.ts',
  'packages/client/test/**/*.test.ts',
  'packages/react/test/*.test.ts',
  'packages/{create-signalbox,embedded-postgres}/test/**/*.test.ts',
  'examples/{*,{approval-bot,demo}/**/*}.test.ts',
];
const browser = [
  'packages/console/test/**/*.test.ts',
  'packages/react/test/browser/**/*.test.ts',
  'examples/chat/**/*.test.ts',
];
// They change a module (`vi.mock`), so no other file may run in their process.
const isolatedUnit = ['packages/server/src/http/body/validate.test.ts', 'packages/server/src/schemas/schemas.test.ts'];
const isolatedServer = ['packages/server/test/operator/backup.test.ts'];
const onDatabase = { globalSetup: ['packages/server/test/support/global-setup.ts'] };

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: beside, exclude: [...server, ...processTests, delivered, ...isolatedUnit] },
      },
      { extends: true, test: { name: 'unit-isolated', include: isolatedUnit, isolate: true } },
      {
        extends: true,
        test: { name: 'server', include: server, exclude: [...processTests, ...isolatedServer], ...onDatabase },
      },
      { extends: true, test: { name: 'server-isolated', include: isolatedServer, isolate: true, ...onDatabase } },
      { extends: true, test: { name: 'process', include: processTests, ...onDatabase } },
      { extends: true, test: { name: 'browser', include: browser, ...onDatabase } },
    ],
    reporters: ['default', './scripts/test-reporter.ts'],
    setupFiles: ['packages/server/test/support/record-statements.ts', 'packages/server/test/support/each-file.ts'],
    // Processes rather than threads: tests change users, send signals and end processes.
    pool: 'forks',
    // A process runs one file after another, so it imports each module once. That takes a third less CPU time.
    isolate: false,
    // PostgreSQL and the services under test need the machine too.
    maxWorkers: 2,
    // No test is about time; this only ends one that hangs, on a machine that may be slow.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
