import { expect, test } from 'vitest';
import { columns, shown } from './usage.ts';

test('untrusted text moves no cursor, starts no line and reverses no text', () => {
  expect(shown('Mara\u001b[2J\r\nowner\u009b1m\u202e\u2066\u2028!')).toBe('Mara�[2J��owner�1m���!');
  expect(shown('Zoë Ångström 山田 🚤')).toBe('Zoë Ångström 山田 🚤');
  expect(
    columns(
      [
        ['a', 'one'],
        [shown('b\n'), 'two'],
      ].map(([left, right]) => [left!, right!]),
    ),
  ).toBe('  a    one\n  b�   two\n');
});
