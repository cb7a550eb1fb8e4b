// `npm test`: all checks and tests, the fastest first. Stops at the first failure. With `CI` set, up to five failed test files are
// run once more, on their own: a test that passes then is reported as flaky, and one that fails again fails the run.
// `npm test -- NAME …` runs some of them: `static` (everything but the tests), or projects of vitest.config.ts. A name with a slash
// is a path, and limits the projects to the test files below it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { memoryDirectory } from './memory-directory.mjs';
import { processorMs } from './processor-time.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
Object.assign(process.env, memoryDirectory());
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-check-'));
const statements = join(scratch, 'statements.jsonl');
const failedTests = join(scratch, 'failed-tests.json');
const vitest = 'node_modules/vitest/vitest.mjs';
// More than this is no coincidence of a busy machine.
const maxRepeatedFiles = 5;

const projects = ['unit', 'server', 'process', 'browser'];
const paths = process.argv.slice(2).filter((name) => name.includes('/'));
const wanted = process.argv.slice(2).filter((name) => !paths.includes(name));
if (paths.length > 0 && wanted.length === 0) wanted.push(...projects);
const unknown = wanted.filter((name) => name !== 'static' && !projects.includes(name));
if (unknown.length > 0) {
  console.error(
    `Unknown: ${unknown.join(', ')}. Choose from static, ${projects.join(', ')}, or give no name to run all.`,
  );
  process.exit(2);
}
const isWhole = wanted.length === 0;
const wantedProjects = wanted.filter((name) => projects.includes(name));

const checks = [
  ['format and lint', 'node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings'],
  ['types', 'node_modules/typescript/bin/tsc', '--noEmit'],
  ['types of the console', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', 'packages/console'],
  ['types of its tests', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', 'packages/console/test'],
  ['types of the React tests', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', 'packages/react/test/browser'],
  ['types of the chat example', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', 'examples/chat'],
  ['unused code', 'node_modules/knip/bin/knip.js', '--no-progress'],
];
const steps = [
  ...(isWhole || wanted.includes('static') ? checks : []),
  ...(isWhole ? [['tests', vitest, 'run']] : []),
  ...(wantedProjects.length > 0
    ? [
        [
          `tests: ${wantedProjects.join(', ')}`,
          vitest,
          'run',
          ...wantedProjects.flatMap((name) => ['--project', `${name}*`]),
          ...paths,
        ],
      ]
    : []),
  ...(isWhole ? [['SQL rules, over every statement that the tests ran', 'test/sql-lint.ts', statements]] : []),
];

const passed = [];
const flaky = [];
for (const [what, ...command] of steps) {
  console.log(`\n── ${what}`);
  const started = performance.now();
  const { status: firstStatus, error } = run(command);
  const status = firstStatus !== 0 && what === 'tests' && process.env.CI ? repeatFailed() : firstStatus;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (status !== 0) {
    console.error(`\nFAILED: ${what} (${seconds} s)${error ? `: ${error.message}` : ''}. ${ranText()}`);
    rmSync(scratch, { recursive: true });
    process.exit(1);
  }
  passed.push(`${what} (${seconds} s)`);
}
rmSync(scratch, { recursive: true });
console.log(`\nAll passed. ${ranText()}`);
if (flaky.length > 0)
  console.log(`\nFlaky, passed only the second time:\n${flaky.map((title) => `  ${title}\n`).join('')}`);

function run(command) {
  return spawnSync(process.execPath, command, {
    cwd: root,
    stdio: 'inherit',
    // A run of only some tests checks its statements itself.
    env: {
      ...process.env,
      ...(isWhole && { SIGNALBOX_TEST_STATEMENTS: statements, SIGNALBOX_FAILED_TESTS: failedTests }),
    },
  });
}

/** Runs the files of the tests that failed once more, and returns the exit status. */
function repeatFailed() {
  let report;
  try {
    report = JSON.parse(readFileSync(failedTests, 'utf8'));
  } catch {
    return 1; // Vitest ended before it had results.
  }
  const { failed, unhandled } = report;
  const isRepeatable = failed.every(({ hasOwnErrors, titles }) => !hasOwnErrors && titles.length > 0);
  if (unhandled > 0 || failed.length === 0 || failed.length > maxRepeatedFiles || !isRepeatable) return 1;
  const titles = failed.flatMap(({ path, titles }) => titles.map((title) => `${path}: ${title}`));
  console.log(`\n── failed tests, once more\n${titles.map((title) => `  ${title}\n`).join('')}`);
  const { status } = run([vitest, 'run', ...failed.map(({ path }) => path)]);
  if (status === 0) flaky.push(...titles);
  return status;
}

function ranText() {
  const notRun = steps.length - passed.length - 1;
  const ms = processorMs();
  return [
    `Passed: ${passed.join('; ') || 'none'}.`,
    ...(notRun > 0 ? [`Not run: ${notRun} more.`] : []),
    ...(ms === undefined ? [] : [`Processor time: ${(ms / 60_000).toFixed(1)} minutes.`]),
  ].join(' ');
}
