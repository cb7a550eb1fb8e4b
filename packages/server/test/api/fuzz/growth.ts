// Bodies that grow: valid bodies of a route with a large value in one field.
import type { SchemaObject } from '@signalbox/contract';

export interface Growth {
  /** The field and the kind of value, as in `tools: objects`. */
  name: string;
  /** The body with about this many bytes in that field. */
  body(bytes: number): unknown;
}

const repeated = <T>(bytes: number, each: number, item: (index: number) => T) =>
  Array.from({ length: Math.max(1, Math.floor(bytes / each)) }, (_, index) => item(index));
const nested = (depth: number, inner: unknown): unknown => (depth === 0 ? inner : [nested(depth - 1, inner)]);

/** Large values of about this many bytes as JSON. `sample`: a valid value of the field. */
export const large: Record<string, (bytes: number, sample: unknown) => unknown> = {
  text: (bytes) => 'a'.repeat(bytes),
  words: (bytes) => 'a '.repeat(bytes / 2),
  spaces: (bytes) => ' '.repeat(bytes),
  places: (bytes) => '{{input.a}}'.repeat(bytes / 11),
  braces: (bytes) => '{{'.repeat(bytes / 2),
  escapes: (bytes) => '%'.repeat(bytes),
  numbers: (bytes) => repeated(bytes, 2, () => 0),
  nothings: (bytes) => repeated(bytes, 3, () => ({})),
  lists: (bytes) => repeated(bytes, 9, () => nested(3, 0)),
  texts: (bytes) => repeated(bytes, 14, (index) => `{{a${index}`),
  fields: (bytes) => Object.fromEntries(repeated(bytes, 13, (index) => [`k${index}`, 'v'])),
  scattered: (bytes) =>
    Object.fromEntries(repeated(bytes, 15, (index) => [`k${Math.imul(index, 2_654_435_761).toString(36)}`, 'v'])),
  objects: (bytes) => Object.fromEntries(repeated(bytes, 12, (index) => [`k${index}`, {}])),
  depth: (bytes) => repeated(bytes, 124, () => nested(58, 0)),
  again: (bytes, sample) => repeated(bytes, JSON.stringify(sample ?? 0).length + 1, () => sample),
};

/** Every large value in every field of the body, including the fields of list items. */
export function growthsOf(schema: SchemaObject, body: unknown): Growth[] {
  const found: Growth[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    for (const [how, make] of Object.entries(large)) {
      const sample = Array.isArray(value) ? value[0] : value;
      found.push({
        name: `${path.join('.') || 'body'}: ${how}`,
        body: (bytes) => withAt(body, path, make(bytes, sample)),
      });
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value))
      visit(inner, [...path, Array.isArray(value) ? Number(name) : name]);
  };
  visit(body, []);
  // Fields that this body does not have.
  for (const name of Object.keys(schema.properties ?? {})) {
    if (Object.hasOwn(body as object, name)) continue;
    for (const [how, make] of Object.entries(large))
      found.push({ name: `${name}: ${how}`, body: (bytes) => withAt(body, [name], make(bytes, 0)) });
  }
  return found;
}

function withAt(value: unknown, [name, ...rest]: readonly (string | number)[], put: unknown): unknown {
  if (name === undefined) return put;
  const copy: Record<string | number, unknown> = Array.isArray(value)
    ? ([...value] as never)
    : { ...(value as Record<string, unknown>) };
  copy[name] = withAt(copy[name], rest, put);
  return copy;
}
