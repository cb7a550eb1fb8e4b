import { OperatorError } from '@signalbox/server';
import { expect, test } from 'vitest';
import { CommandError, UsageError } from './command.ts';
import { errorText } from './errors.ts';
import type { Terminal } from './terminal.ts';

const terminal = { stderr: { styled: (_: string, text: string) => text }, env: {} } as unknown as Terminal;

test('no error controls the terminal, whatever file or service its text is from', async () => {
  const evil = 'a\u001b]0;owned\u0007\u001b[2J\u202e';
  for (const error of [
    new CommandError(evil),
    new UsageError(evil, 'signalbox --help'),
    new OperatorError(evil),
    new Error(evil),
  ]) {
    const text = await errorText(error, terminal);
    expect(text).toContain('signalbox: ');
    expect(text).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
  }
  expect(await errorText(new CommandError('one\ntwo'), terminal)).toBe('signalbox: one\ntwo\n');
});
