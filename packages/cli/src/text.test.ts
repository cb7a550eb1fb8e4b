import { expect, test } from 'vitest';
import { columns, padEnd, shown, truncate, widthOf, wrap } from './text.ts';

test('untrusted text moves no cursor, starts no line and reverses no text', () => {
  expect(shown('Mara\u001b[2J\r\nowner\u009b1m\u202e\u2066\u2028!')).toBe('Mara�[2J��owner�1m���!');
  expect(shown('Zoë Ångström 山田 🚤')).toBe('Zoë Ångström 山田 🚤');
  expect(
    columns([
      ['a', 'one'],
      [shown('b\n'), 'two'],
    ]),
  ).toBe('  a    one\n  b�   two\n');
});

test('widths count the columns of a terminal, not characters', () => {
  for (const [text, width] of [
    ['abc', 3],
    ['山田', 4],
    ['🚤!', 3],
    ['Å', 1],
    ['A\u030a', 1],
    ['❤\ufe0f', 2],
    ['', 0],
  ] as const) {
    expect(widthOf(text), text).toBe(width);
    expect(widthOf(padEnd(text, 9))).toBe(9);
  }
});

test('truncated text is never wider than its column, and no character is cut in half', () => {
  expect(truncate('refund desk', 8)).toBe('refund …');
  expect(truncate('refund', 6)).toBe('refund');
  expect(truncate('山田太郎', 5)).toBe('山田…');
  expect(truncate('山田太郎', 4)).toBe('山…');
  expect(truncate('👩‍🚀👩‍🚀👩‍🚀', 3)).toBe('👩‍🚀…');
});

test('wrapped text keeps its paragraphs, and a long word keeps its line', () => {
  expect(wrap('one two three\nfour', 8, 2)).toBe('one two\n  three\n  four');
  expect(wrap('a https://signalbox.example.com b', 6)).toBe('a\nhttps://signalbox.example.com\nb');
});

const rows: [string, string][] = [
  ['--port', 'port of the API and the console; 0 selects any free port'],
  ['--host', 'https://signalbox.example.com/an/address/longer/than/its/line'],
];

test('the second column is broken between words at the width, under its own beginning', () => {
  expect(columns(rows, { width: 45 })).toBe(
    `  --port   port of the API and the console; 0
           selects any free port
  --host   https://signalbox.example.com/an/address/longer/than/its/line
`,
  );
});

test('in a narrow terminal the text is below the option', () => {
  expect(columns(rows.slice(0, 1), { width: 40 })).toBe(
    `  --port
      port of the API and the console; 0
      selects any free port
`,
  );
});
