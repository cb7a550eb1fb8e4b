import { expect, test } from 'vitest';
import { createThinkTags, type Piece } from './think-tags.ts';

/** The text and the reasoning of a text that arrives in pieces of this length. */
function read(text: string, length: number): [text: string, reasoning: string] {
  const tags = createThinkTags();
  const pieces = Array.from({ length: Math.ceil(text.length / length) }, (_, at) =>
    text.slice(at * length, (at + 1) * length),
  );
  const read = [...pieces.flatMap((piece) => tags.push(piece)), ...tags.end()];
  const of = (type: Piece['type']) => read.flatMap((one) => (one.type === type ? [one.text] : [])).join('');
  return [of('text'), of('reasoning')];
}

test.each([
  ['<think>hm, a name</think>\n{"name":"a"}', '{"name":"a"}', 'hm, a name'],
  ['\n<think>\na < b </thin </think>\n\nYes', 'Yes', '\na < b </thin '],
  ['<thinking>hm</thinking>Yes', 'Yes', 'hm'],
  ['[THINK]hm[/THINK]Yes', 'Yes', 'hm'],
  ['◁think▷hm◁/think▷ Yes ', 'Yes ', 'hm'],
  ['<think></think>Yes', 'Yes', ''],
  ['<think>a</think>\n<think>b</think>\nYes', 'Yes', 'ab'],
  ['<think>hm</think>The tag <think>x</think> is a tag', 'The tag <think>x</think> is a tag', 'hm'],
  ['<think>never closed </think', '', 'never closed </think'],
  ['<think>hm</think>  ', '', 'hm'],
  ['The tag <think>x</think>', 'The tag <think>x</think>', ''],
  ['```html\n<think>x</think>\n```', '```html\n<think>x</think>\n```', ''],
  ['<thing>x</thing>', '<thing>x</thing>', ''],
  ['  <thi', '  <thi', ''],
  [' Hello', ' Hello', ''],
  ['', '', ''],
])('%j is divided, however it arrives', (given, text, reasoning) => {
  for (const length of [1, 2, 3, 7, 100]) expect(read(given, length)).toEqual([text, reasoning]);
});
