import { expect, test } from 'vitest';
import { createLog } from './log.ts';

/** The log line of `error`. */
function logged(error: unknown): { text: string; err: { [field: string]: unknown } } {
  const lines: string[] = [];
  createLog({ level: 'info', destination: { write: (line) => lines.push(line) } }).error({ err: error }, 'failed');
  const [text = ''] = lines;
  return { text, err: JSON.parse(text).err };
}

test('one of our errors is logged with its name, code, message and stack', () => {
  const error = Object.assign(new TypeError('too short'), { code: 'E_SHORT' });
  expect(logged(error).err).toMatchObject({ type: 'TypeError', code: 'E_SHORT', message: 'too short' });
  expect(logged(error).err.at).toEqual(expect.arrayContaining([expect.stringContaining('log.test.ts')]));
});

test('other properties of an error are not logged, nor those of its cause', () => {
  const inner = Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (name)=(hunter2) exists.' });
  const outer = Object.assign(new Error('failed', { cause: inner }), { requestBodyValues: { prompt: 'hunter2' } });
  const { text, err } = logged(outer);
  expect(err).toMatchObject({ cause: { code: '23505', message: 'duplicate key' } });
  expect(text).not.toContain('hunter2');
});

test('messages that quote what was sent or received are left out, and so are thrown values that are not errors', () => {
  const quoting = Object.assign(new Error('bad value: hunter2'), { name: 'AI_APICallError' });
  let syntaxError: unknown;
  try {
    JSON.parse('{"a": hunter2}');
  } catch (error) {
    syntaxError = error;
  }
  const dataError = Object.assign(new Error('invalid input syntax for type uuid: "hunter2"'), { code: '22P02' });
  const lines = Object.assign(new Error('bad value:\n  at hunter2 it ends'), { name: 'AI_APICallError' });
  for (const error of [
    quoting,
    dataError,
    lines,
    new Error('outer', { cause: dataError }),
    syntaxError,
    'hunter2',
    { secret: 'hunter2' },
  ]) {
    expect(logged(error).text).not.toContain('hunter2');
  }
});
