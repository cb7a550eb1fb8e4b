import { expect, test } from 'vitest';
import { wrappedColumns } from './wrap.ts';

const rows: [string, string][] = [
  ['--port', 'port of the API and the console; 0 selects any free port'],
  ['--host', 'https://signalbox.example.com/an/address/longer/than/its/line'],
];

test('the second column is broken between words at the width, under its own beginning', () => {
  expect(wrappedColumns(rows, 6, 45)).toBe(
    `  --port   port of the API and the console; 0
           selects any free port
  --host   https://signalbox.example.com/an/address/longer/than/its/line
`,
  );
});

test('in a narrow terminal the text is below the option', () => {
  expect(wrappedColumns(rows.slice(0, 1), 6, 40)).toBe(
    `  --port
      port of the API and the console; 0
      selects any free port
`,
  );
});
