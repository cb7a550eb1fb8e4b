// A reporter of vitest: writes the failed tests to the file that SIGNALBOX_FAILED_TESTS names, for scripts/test.mjs.
import { writeFileSync } from 'node:fs';

export default class FailedTestsReporter {
  onTestRunEnd(files, unhandledErrors) {
    const failed = files
      .filter((file) => file.state() === 'failed')
      .map((file) => ({
        path: file.relativeModuleId,
        // In the file itself, or in a hook of all its tests.
        hasOwnErrors: file.errors().length > 0,
        titles: [...file.children.allTests('failed')].map((test) => test.fullName),
      }));
    writeFileSync(process.env.SIGNALBOX_FAILED_TESTS, JSON.stringify({ failed, unhandled: unhandledErrors.length }));
  }
}
