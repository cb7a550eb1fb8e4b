// Finds the parts of a value that are larger than the schema allows, before anything slower reads them.
import type { SchemaObject } from './components.ts';
import type { FieldError } from './errors.ts';
import { shapeOf } from './validation/narrow.ts';
import { unknownField } from './validation/unknown-field.ts';

/** A few mistyped names are reported with the other errors; if there are more, only they are reported. */
const FEW_UNKNOWN = 4;

/**
 * The parts of a value that have too many items or fields, or many unknown fields. It is one pass that does not descend into
 * such a part, so that slower checks never see more than the schema allows. At most `max` errors.
 */
export function sizeErrors(schema: SchemaObject, value: unknown, max: number): FieldError[] {
  const errors: FieldError[] = [];
  const visit = (of: SchemaObject, part: unknown, path: string): void => {
    if (errors.length >= max || typeof part !== 'object' || part === null) return;
    const shape = shapeOf(of, part);
    if (Array.isArray(part)) {
      const { items, maxItems = Number.POSITIVE_INFINITY } = shape;
      if (part.length > maxItems) errors.push({ path, message: `must have at most ${maxItems} items` });
      else if (items) for (const [index, item] of part.entries()) visit(items, item, `${path}[${index}]`);
      return;
    }
    const { properties = {}, additionalProperties: others, maxProperties = Number.POSITIVE_INFINITY } = shape;
    const names = Object.keys(part);
    const at = (name: string) => (path ? `${path}.${name}` : name);
    if (names.length > maxProperties) {
      errors.push({ path, message: `must have at most ${maxProperties} fields` });
      return;
    }
    const unknown = others === false ? names.filter((name) => !Object.hasOwn(properties, name)) : [];
    if (unknown.length > FEW_UNKNOWN) {
      for (const name of unknown.slice(0, max - errors.length))
        errors.push({ path: at(name), message: unknownField(name, shape) });
      return;
    }
    for (const name of names) {
      const inner = Object.hasOwn(properties, name) ? properties[name] : others;
      if (typeof inner === 'object') visit(inner, (part as Record<string, unknown>)[name], at(name));
    }
  };
  visit(schema, value, '');
  return errors;
}

/**
 * Whether a part has more items or fields than its schema allows; a full check would read all of them first. Parts for which the
 * schema has alternatives are not looked at, so a valid value is never too large.
 */
export function isTooLarge(schema: SchemaObject, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) {
    const { items, maxItems = Number.POSITIVE_INFINITY } = schema;
    return value.length > maxItems || (items !== undefined && value.some((item) => isTooLarge(items, item)));
  }
  const { properties = {}, additionalProperties: others, maxProperties = Number.POSITIVE_INFINITY } = schema;
  const known = Object.entries(properties);
  if (Object.keys(value).length > (others === false ? known.length : maxProperties)) return true;
  const fields = value as Record<string, unknown>;
  return known.some(([name, inner]) => Object.hasOwn(fields, name) && isTooLarge(inner, fields[name]));
}
