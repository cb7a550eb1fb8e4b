import { expect, test } from 'vitest';
import { definitionTexts } from '../src/pages/agents/diff.ts';

test('key order and omitted defaults are not changes; instructions are compared on their own', () => {
  const one = { name: 'A', model: { provider: 'openai', model: 'm' }, instructions: 'one\ntwo' };
  const other = {
    model: { model: 'm', provider: 'openai' },
    name: 'A',
    description: '',
    instructions: 'one\n2',
    tools: [],
  };
  expect(definitionTexts(one).instructions).toBe('one\ntwo');
  expect(definitionTexts(other).instructions).toBe('one\n2');
  expect(definitionTexts(one).rest).toBe(definitionTexts(other).rest);
});
