// Which schemas apply to a value of a JSON text. For completion and hover: alternatives that the text excludes are left out.
import type { EditorState } from '@codemirror/state';
import type { SyntaxNode } from '@lezer/common';
import { childrenOf, isValue, propertiesOf, stringOf, valueNodeOf } from './json-nodes.ts';

export type JsonSchema = Record<string, unknown>;

/** A schema that refers to itself many times over is not searched further. */
const MOST_SCHEMAS = 200;

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The schemas of the value at `node`, which may be incomplete. */
export function schemasOf(state: EditorState, root: JsonSchema, node: SyntaxNode): JsonSchema[] {
  const { parent } = node;
  if (!parent || parent.type.isTop) return expand(state, root, [root], node);
  if (parent.name === 'Property') {
    const name = parent.getChild('PropertyName');
    const object = parent.parent;
    return name && object ? schemasOfProperty(state, root, object, stringOf(state, name), node) : [];
  }
  if (parent.name === 'Array') {
    const index = childrenOf(parent)
      .filter(isValue)
      .findIndex((one) => one.from === node.from);
    const inner = schemasOf(state, root, parent).flatMap((schema) => [
      ...listOf(schema.prefixItems).slice(index, index + 1),
      schema.items,
    ]);
    return expand(state, root, inner, node);
  }
  return [];
}

/** The schemas of a property of an object; `node` is its value, if it has one. */
export function schemasOfProperty(
  state: EditorState,
  root: JsonSchema,
  object: SyntaxNode,
  name: string,
  node?: SyntaxNode,
): JsonSchema[] {
  const inner = schemasOf(state, root, object).map((schema) => {
    const own = isSchema(schema.properties) ? schema.properties : {};
    return Object.hasOwn(own, name) ? own[name] : (patternOf(schema) ?? schema.additionalProperties);
  });
  return expand(state, root, inner, node);
}

/** The schema of names that are not listed. Patterns are not evaluated here: a schema may come from others. */
function patternOf({ patternProperties }: JsonSchema): unknown {
  const patterns = isSchema(patternProperties) ? Object.values(patternProperties) : [];
  return patterns.length === 1 ? patterns[0] : undefined;
}

/** With what they refer to, and their alternatives, in place of themselves. */
function expand(
  state: EditorState,
  root: JsonSchema,
  schemas: readonly unknown[],
  node: SyntaxNode | undefined,
): JsonSchema[] {
  const found = new Set<JsonSchema>();
  const queue = [...schemas];
  for (
    let next = queue.shift();
    found.size < MOST_SCHEMAS && (next !== undefined || queue.length > 0);
    next = queue.shift()
  ) {
    if (!isSchema(next) || found.has(next)) continue;
    found.add(next);
    if (typeof next.$ref === 'string') queue.push(resolve(root, next.$ref));
    queue.push(...listOf(next.allOf));
    for (const one of [...listOf(next.anyOf), ...listOf(next.oneOf)]) {
      if (!node || mayBe(state, root, one, node)) queue.push(one);
    }
  }
  return [...found];
}

function resolve(root: JsonSchema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  return reference
    .slice(1)
    .split('/')
    .slice(1)
    .reduce<unknown>((at, part) => {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
      return isSchema(at) && Object.hasOwn(at, name) ? at[name] : undefined;
    }, root);
}

/** Whether an alternative can be meant: its type is that of the value, and no constant of the value differs. */
function mayBe(state: EditorState, root: JsonSchema, schema: unknown, node: SyntaxNode): boolean {
  const given = isSchema(schema) && typeof schema.$ref === 'string' ? resolve(root, schema.$ref) : schema;
  if (!isSchema(given)) return true;
  if (node.name !== 'Object') return node.name !== 'Array' || given.type === undefined || given.type === 'array';
  if (given.type !== undefined && given.type !== 'object') return false;
  const expected = isSchema(given.properties) ? given.properties : {};
  return propertiesOf(state, node).every(({ name, node: property }) => {
    const one = Object.hasOwn(expected, name) ? expected[name] : undefined;
    const value = valueNodeOf(property);
    if (!isSchema(one) || typeof one.const !== 'string' || value?.name !== 'String') return true;
    return stringOf(state, value) === one.const;
  });
}

/** The values that a schema lists. */
export function valuesOf(schema: JsonSchema): unknown[] {
  if ('const' in schema) return [schema.const];
  if (Array.isArray(schema.enum)) return schema.enum;
  const types = [schema.type].flat();
  return [...(types.includes('boolean') ? [true, false] : []), ...(types.includes('null') ? [null] : [])];
}

/** The type in a few words. */
export function typeText(schemas: readonly JsonSchema[]): string {
  const types = schemas.flatMap((schema) => {
    if ('const' in schema) return [JSON.stringify(schema.const)];
    return [schema.type].flat().filter((type) => typeof type === 'string');
  });
  return [...new Set(types)].join(' or ');
}

/** The texts about a value, each once. */
export function aboutSchemas(schemas: readonly JsonSchema[]): string[] {
  const texts = schemas.flatMap(({ title, description }) => [title, description]);
  return [...new Set(texts.filter((text) => typeof text === 'string' && text !== ''))] as string[];
}
