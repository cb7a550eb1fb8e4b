// Records each statement that the tests run, for `test/sql-lint.ts` afterwards.
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { inject } from 'vitest';

// Undefined in tests without a database.
const file = inject('statementsFile');
const seen = new Set<unknown>();
// This file runs before each test file, of which a process runs many.
const here = globalThis as { signalboxRecordsStatements?: boolean };

if (file && !here.signalboxRecordsStatements) {
  here.signalboxRecordsStatements = true;
  const record = (statement: unknown) => {
    const line = JSON.stringify(statement);
    if (seen.has(line)) return;
    seen.add(line);
    appendFileSync(file, `${line}\n`);
  };
  subscribe('signalbox.statement', record);
  subscribe('signalbox.across', record);
}
