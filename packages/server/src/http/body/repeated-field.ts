// Finds a field that an object of a JSON text has twice. The engine's parser keeps the last one silently, other parsers the first, so two
// programs that look at the same body would see different requests.
import type { FieldError } from '@signalbox/contract';
import { stringEnd } from './json-error.ts';

interface Open {
  /** The fields so far; undefined for a list. */
  readonly fields: Set<string> | undefined;
  /** The last field, or the index of the item. */
  step: string | number;
}

/** The first one in a text that is JSON. */
export function repeatedField(text: string): FieldError | undefined {
  const open: Open[] = [];
  /** Whether the next string is the name of a field. */
  let isName = false;
  for (let at = 0; at < text.length; ) {
    const c = text[at]!;
    const inner = open.at(-1);
    let end = at + 1;
    if (c === '"') {
      end = stringEnd(text, at)!;
      if (isName) {
        const name = JSON.parse(text.slice(at, end)) as string;
        inner!.step = name;
        if (inner!.fields!.has(name)) return { path: pathOf(open), message: 'must be given once' };
        inner!.fields!.add(name);
        isName = false;
      }
    } else if (c === '{') {
      open.push({ fields: new Set(), step: '' });
      isName = true;
    } else if (c === '[') {
      open.push({ fields: undefined, step: 0 });
    } else if (c === '}' || c === ']') {
      open.pop();
      isName = false;
    } else if (c === ',') {
      isName = inner!.fields !== undefined;
      if (typeof inner!.step === 'number') inner!.step += 1;
    }
    at = end;
  }
  return undefined;
}

function pathOf(open: readonly Open[]): string {
  return open.reduce((path, { step }) => {
    if (typeof step === 'number') return `${path}[${step}]`;
    return path === '' ? step : `${path}.${step}`;
  }, '');
}
