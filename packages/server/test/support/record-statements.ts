// Writes down each statement that the tests run, for `test/sql-lint.ts` afterwards: only in a run of everything.
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';

const file = process.env.SIGNALBOX_TEST_STATEMENTS;
const seen = new Set<unknown>();

if (file) {
  subscribe('signalbox.statement', (text) => {
    if (seen.has(text)) return;
    seen.add(text);
    appendFileSync(file, `${JSON.stringify(text)}\n`);
  });
}
