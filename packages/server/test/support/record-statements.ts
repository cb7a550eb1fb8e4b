// Writes down each statement that the tests run, for `test/sql-lint.ts` afterwards.
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { inject } from 'vitest';

// Undefined in tests that have no database.
const file = inject('statementsFile');
const seen = new Set<unknown>();

if (file) {
  subscribe('signalbox.statement', (text) => {
    if (seen.has(text)) return;
    seen.add(text);
    appendFileSync(file, `${JSON.stringify(text)}\n`);
  });
}
