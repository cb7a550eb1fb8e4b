import { describe, expect, test } from 'vitest';
import { draftOf, problemsOf, readDraft } from './input-draft.ts';

test('an untouched draft is the requested input', () => {
  const inputs = [
    { order: '1042', cents: 9900, rate: 1e-7, fast: true, note: null, empty: '' },
    { deep: { a: [1, 'two', null] } },
    { '\u202eorder': 'x' },
    {},
    [1, 2],
    'text',
    JSON.parse('{"__proto__":"own","constructor":1}') as object,
  ];
  for (const input of inputs) {
    const read = readDraft(draftOf(input), input);
    expect(JSON.stringify('value' in read && read.value)).toBe(JSON.stringify(input));
  }
});

describe('a form', () => {
  const original = { order: '1042', cents: 9900, fast: true, note: null };
  const edited = (fields: Record<string, string>) => {
    const draft = draftOf(original);
    if (draft.as !== 'form') throw new Error('not a form');
    return readDraft({ as: 'form', fields: { ...draft.fields, ...fields } }, original);
  };

  test('keeps the types of its fields', () => {
    expect(edited({ order: '7', cents: '-1.5e3', fast: 'false', note: 'hm' })).toEqual({
      value: { order: '7', cents: -1500, fast: false, note: 'hm' },
    });
  });

  test.each(['', 'much', '1,5', '0x10', 'Infinity', '01'])('refuses %j as a number, at its field', (cents) => {
    expect(edited({ cents })).toEqual({ problems: [{ field: 'cents', text: 'Enter a number.' }] });
  });

  test.each([{ deep: {} }, { list: [1] }, { hidden: 'a\u200bb' }, {}, [1]])(
    'is not offered if it would lose or hide something: %j',
    (input) => {
      expect(draftOf(input).as).toBe('json');
    },
  );
});

test('invalid JSON is reported', () => {
  const read = readDraft({ as: 'json', text: '{ "order": ' }, {});
  expect('problems' in read && read.problems[0]!.text).toMatch(/^This is not valid JSON/);
});

test('the service’s errors appear at the fields that they name, others at the form', () => {
  const message =
    "does not match the tool's schema: /cents must be >= 1; / must have required properties: to; /a/b is odd";
  expect(problemsOf(message, ['cents', 'order', 'a'])).toEqual([
    { field: 'cents', text: 'must be >= 1' },
    { text: 'Doesn’t match the tool’s schema: must have required properties: to; /a/b is odd' },
  ]);
});
