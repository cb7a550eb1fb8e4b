import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ApiError } from '../../lib/api-error.ts';
import { requireFaithful } from './json-value.ts';

/** JSON whose objects can have a field several times, which no value of a program can. */
type Tree = number | string | Tree[] | { fields: [string, Tree][] };

const names = fc.constantFrom('a', 'b', 'é', ':', '"', '\\', '{"a":1}', 'a\nb', '');
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.integer(),
    names,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.record({ fields: fc.array(fc.tuple(names, tie('tree')), { maxLength: 4 }) }),
  ),
}));

interface Written {
  text: string;
  /** The path of the first field that its object has already. */
  repeated: string | undefined;
}

function write(value: Tree, path: string): Written {
  if (typeof value !== 'object') return { text: JSON.stringify(value), repeated: undefined };
  let repeated: string | undefined;
  const known = new Set<string>();
  const inner = Array.isArray(value)
    ? value.map((item, index) => {
        const written = write(item, `${path}[${index}]`);
        repeated ??= written.repeated;
        return written.text;
      })
    : value.fields.map(([name, field]) => {
        const at = path === '' ? name : `${path}.${name}`;
        if (known.has(name)) repeated ??= at;
        known.add(name);
        const written = write(field, at);
        repeated ??= written.repeated;
        return ` ${escaped(name)} :${written.text}`;
      });
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return { text: `${open}${inner.join(', ')}${close}`, repeated };
}

/** A name may be written in two ways. */
const escaped = (name: string) => (name === 'a' ? '"\\u0061"' : JSON.stringify(name));

test('of all JSON, what has a field twice is refused with the path of the second one', () => {
  fc.assert(
    fc.property(tree, (value) => {
      const { text, repeated } = write(value, '');
      let refused: string | undefined;
      try {
        requireFaithful(text, Buffer.from(text), JSON.parse(text));
      } catch (error) {
        refused = (error as ApiError).errors?.[0]?.path;
      }
      expect(refused, text).toBe(repeated);
    }),
    { numRuns: 500 },
  );
});
