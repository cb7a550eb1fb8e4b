// A reporter of vitest. Its last lines, which are all that some places keep of a long log, name each failed test and say what the
// processor did. Writes the failed tests to the file that SIGNALBOX_FAILED_TESTS names, for scripts/test.mjs.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { childrenProcessorMs, processorMs } from './processor-time.ts';

declare module 'vitest' {
  interface TaskMeta {
    /**
     * Milliseconds of processor time that the worker of a test file and all that it started used since the end of its previous file:
     * nodes, browsers, and servers other than the PostgreSQL that all files share.
     */
    processorMs?: number;
  }
}

const MAX_FAILURES = 18;
const MAX_WIDTH = 300;
const DEAREST = 5;

export default class TestReporter implements Reporter {
  onTestRunEnd(files: readonly TestModule[], unhandledErrors: readonly object[]): void {
    const failed = files.filter((file) => file.state() === 'failed');
    const path = process.env.SIGNALBOX_FAILED_TESTS;
    if (path) {
      const report = failed.map((file) => ({
        path: file.relativeModuleId,
        // In the file itself, or in a hook of all its tests.
        hasOwnErrors: file.errors().length > 0,
        titles: [...file.children.allTests('failed')].map((test) => test.fullName),
      }));
      writeFileSync(path, JSON.stringify({ failed: report, unhandled: unhandledErrors.length }));
    }
    const failures = [...failed.flatMap(failuresOf), ...unhandledErrors.map(unhandledFailure)];
    const dear = files.length > 1 ? processorLines(files) : () => [];
    // After the summary and the end of PostgreSQL.
    process.once('exit', () => {
      for (const line of [...failureLines(failures), ...dear()]) console.log(line);
    });
  }
}

interface Failure {
  what: string;
  message: string | undefined;
}

function failuresOf(file: TestModule): Failure[] {
  const path = file.relativeModuleId;
  const suites = [file, ...file.children.allSuites()].filter((suite) => suite.errors().length > 0);
  const tests = [...file.children.allTests('failed')];
  return [
    ...suites.map((suite) => ({
      what: 'fullName' in suite ? `${path}: ${suite.fullName}` : path,
      message: suite.errors()[0]?.message,
    })),
    ...tests.map((test) => ({ what: `${path}: ${test.fullName}`, message: test.result().errors?.[0]?.message })),
  ];
}

/** An error that no test awaited. Vitest adds the file and the test that ran. */
function unhandledFailure(error: object): Failure {
  const { message, VITEST_TEST_PATH: path, VITEST_TEST_NAME: title } = error as Record<string, string | undefined>;
  return { what: `${path ? relative(process.cwd(), path) : 'No file'}: ${title ?? 'no test'}: unhandled`, message };
}

function failureLines(failures: readonly Failure[]): string[] {
  if (failures.length === 0) return [];
  const shown = failures.length > MAX_FAILURES ? failures.slice(0, MAX_FAILURES - 1) : failures;
  const lines = shown.map(({ what, message = 'no message' }) =>
    `  ${what}: ${message.trim().split('\n')[0]}`.slice(0, MAX_WIDTH),
  );
  if (shown.length < failures.length) lines.push(`  and ${failures.length - shown.length} more`);
  return ['Failed:', ...lines];
}

/** Reads what the files and PostgreSQL used so far; what it returns is called when everything has ended. */
function processorLines(files: readonly TestModule[]): () => string[] {
  const used = files.map((file) => ({ file, ms: file.meta().processorMs ?? 0 }));
  const parts = new Map<string, number>();
  for (const { file, ms } of used) {
    const part = file.project.name.replace('-isolated', '');
    parts.set(part, (parts.get(part) ?? 0) + ms);
  }
  const postgres = childrenProcessorMs('postgres');
  return () => {
    const all = processorMs();
    if (all === undefined) return [];
    const rest = Math.max(0, all - postgres - used.reduce((sum, { ms }) => sum + ms, 0));
    const texts = [...parts, ['the shared PostgreSQL', postgres] as const, ['vitest and the rest', rest] as const].map(
      ([name, ms]) => `${name} ${seconds(ms)}`,
    );
    const dearest = used
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, DEAREST)
      .map(({ file, ms }) => `${file.relativeModuleId} ${seconds(ms)}`);
    return [
      `Processor time: ${(all / 60_000).toFixed(1)} minutes: ${texts.join(', ')}. The dearest files: ${dearest.join(', ')}.`,
    ];
  };
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(0)} s`;
