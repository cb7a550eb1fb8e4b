// The input of a call with the names of properties that its server knows, and with the tool's own. A name stands for another only where
// the schema declares that property: a list of values by the user's own keys is left as it is.
import { SchemaDocument } from '../../schemas/document.ts';
import { isObject, isSchema, MAPS, type SchemaNode, type SchemaObject } from '../../schemas/keywords.ts';

export interface InputNames {
  /** The names that are sent, by the tool's own. */
  readonly sent: ReadonlyMap<string, string>;
  toSent(input: unknown): unknown;
  toOwn(input: unknown): unknown;
}

export function inputNames(schema: SchemaObject, sent: ReadonlyMap<string, string>): InputNames {
  if (sent.size === 0) return { sent, toSent: (input) => input, toOwn: (input) => input };
  const own = new Map([...sent].map(([name, short]) => [short, name]));
  const document = new SchemaDocument(schema);
  const renamed = (input: unknown, names: ReadonlyMap<string, string>, ownOf: (name: string) => string) => {
    const visit = (value: unknown, given: readonly SchemaNode[]): unknown => {
      if (typeof value !== 'object' || value === null) return value;
      const parts = partsOf(given, document);
      if (Array.isArray(value)) return value.map((item, index) => visit(item, itemsAt(parts, index)));
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => {
          const declared = declaredAs(parts, ownOf(name));
          if (declared) return [names.get(name) ?? name, visit(item, declared)];
          return [name, visit(item, declaredAs(parts, name) ?? othersOf(parts))];
        }),
      );
    };
    return visit(input, [schema]);
  };
  return {
    sent,
    toSent: (input) => renamed(input, sent, (name) => name),
    toOwn: (input) => renamed(input, own, (name) => own.get(name) ?? name),
  };
}

/** The names of all properties that a schema has anywhere. */
export function namesIn(schema: SchemaObject): Set<string> {
  const names = new Set<string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    if (!isObject(node)) return;
    for (const [keyword, value] of Object.entries(node)) {
      if (keyword === 'required' && Array.isArray(value)) for (const name of value) names.add(String(name));
      if (!MAPS.has(keyword)) {
        if (keyword !== 'const' && keyword !== 'enum' && keyword !== 'default') visit(value);
        continue;
      }
      if (keyword === 'properties') for (const name of Object.keys(value as object)) names.add(name);
      for (const part of Object.values(value as object)) visit(part);
    }
  };
  visit(schema);
  return names;
}

/**
 * The names of properties that stand where a value can also have keys that the schema does not name. A short name could be such a
 * key.
 */
export function namesBesideKeys(schema: SchemaObject): Set<string> {
  const document = new SchemaDocument(schema);
  const names = new Set<string>();
  const seen = new Set<SchemaNode>();
  const visit = (given: readonly SchemaNode[]): void => {
    if (given.every((node) => seen.has(node))) return;
    for (const node of given) seen.add(node);
    const parts = partsOf(given, document);
    const declared = parts.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : []));
    if (parts.some(hasOwnKeys)) for (const name of declared) names.add(name);
    for (const name of declared) visit(declaredAs(parts, name)!);
    visit(othersOf(parts));
    for (const { prefixItems, items } of parts)
      for (const index of [prefixItems, items].find(Array.isArray)?.keys() ?? []) visit(itemsAt(parts, index));
    visit(itemsAt(parts, Number.POSITIVE_INFINITY));
  };
  visit([schema]);
  return names;
}

function hasOwnKeys({ type, properties, additionalProperties, patternProperties }: SchemaObject): boolean {
  if (additionalProperties !== undefined) return additionalProperties !== false || patternProperties !== undefined;
  return patternProperties !== undefined || (type === 'object' && properties === undefined);
}

/** All parts that are about a value, if the given ones are. */
function partsOf(given: readonly SchemaNode[], document: SchemaDocument): SchemaObject[] {
  const parts = new Set<SchemaObject>();
  const add = (node: unknown): void => {
    if (!isObject(node) || parts.has(node)) return;
    parts.add(node);
    for (const target of document.targets(node)) add(target);
    for (const list of [node.allOf, node.anyOf, node.oneOf]) if (Array.isArray(list)) list.forEach(add);
    for (const one of [node.if, node.then, node.else]) add(one);
    for (const map of [node.dependentSchemas, node.dependencies]) if (isObject(map)) Object.values(map).forEach(add);
  };
  given.forEach(add);
  return [...parts];
}

/** What the parts say of a property, if one of them names it. */
function declaredAs(parts: readonly SchemaObject[], name: string): SchemaNode[] | undefined {
  const found = parts.flatMap(({ properties }) =>
    isObject(properties) && Object.hasOwn(properties, name) ? [properties[name] as SchemaNode] : [],
  );
  const isRequired = parts.some(({ required }) => Array.isArray(required) && required.includes(name));
  return found.length > 0 || isRequired ? found : undefined;
}

function othersOf(parts: readonly SchemaObject[]): SchemaNode[] {
  return parts.flatMap(({ additionalProperties, unevaluatedProperties, patternProperties }) => [
    ...[additionalProperties, unevaluatedProperties].filter(isSchema),
    ...(isObject(patternProperties) ? Object.values(patternProperties).filter(isSchema) : []),
  ]);
}

function itemsAt(parts: readonly SchemaObject[], index: number): SchemaNode[] {
  return parts.flatMap(({ prefixItems, items, additionalItems, contains, unevaluatedItems }) => {
    const positions = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    return [positions[index], items, additionalItems, contains, unevaluatedItems].filter(isSchema);
  });
}
