// `npm test`: everything that must hold, in the order in which a failure is cheapest to find. Ends at the first that fails.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-check-'));
const statements = join(scratch, 'statements.jsonl');

const steps = [
  ['format and lint', 'node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings'],
  ['types', 'node_modules/typescript/bin/tsc', '--noEmit'],
  ['types of the console', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', 'packages/console'],
  ['types of its tests', 'node_modules/typescript/bin/tsc', '--noEmit', '-p', 'packages/console/test'],
  ['unused code', 'node_modules/knip/bin/knip.js', '--no-progress'],
  ['tests', 'node_modules/vitest/vitest.mjs', 'run'],
  ['SQL rules, over every statement that the tests ran', 'test/sql-lint.ts', statements],
];

const passed = [];
for (const [what, ...command] of steps) {
  console.log(`\n── ${what}`);
  const started = performance.now();
  const { status, error } = spawnSync(process.execPath, command, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, SIGNALBOX_TEST_STATEMENTS: statements },
  });
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

function ranText() {
  const notRun = steps.length - passed.length - 1;
  return `Passed: ${passed.join('; ') || 'none'}.${notRun > 0 ? ` Not run: ${notRun} more.` : ''}`;
}
