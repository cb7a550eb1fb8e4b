/**
 * Writes `src/types.generated.ts` from the contract: an interface for each titled schema, and the table of operations.
 *
 *     node packages/client/scripts/generate.ts
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  collectComponents,
  componentPrefix,
  deliveryHeaders,
  Problem,
  permissionOf,
  type Route,
  replayWindowSeconds,
  routes,
  type SchemaObject,
  type Shape,
  scopesOf,
  signingSecretPrefix,
  standardHeaders,
} from '@signalbox/contract';

const { refer, schemas } = collectComponents();

/** The whole file. */
export function generate(): string {
  const operations = Object.entries<Route>(routes);
  const types = operations.map(([name, route]) => operationType(name, route));
  refer(Problem);
  const components = Object.entries(schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => declaration(name, schema));
  const table = operations.map(([name, { method, path }]) => `  ${name}: { method: '${method}', path: '${path}' },`);
  return `// Generated from the contract by scripts/generate.ts; npm test compares.

${components.join('\n\n')}

/** The input and result of every operation of the API. */
export interface Operations {
${types.join('\n')}
}

/** Method and path of every operation, below \`/api/v1\`. */
export const operations = {
${table.join('\n')}
} as const satisfies Record<keyof Operations, { method: string; path: string }>;

/** Headers of a webhook delivery. */
export const deliveryHeaders = ${JSON.stringify(deliveryHeaders, null, 2)} as const;

/** The Standard Webhooks headers of a delivery. */
export const standardHeaders = ${JSON.stringify(standardHeaders, null, 2)} as const;

/** What a signing secret starts with; the base64 of 32 bytes follows. */
export const signingSecretPrefix = '${signingSecretPrefix}';

/** How far a delivery's timestamp may be from the receiver's clock, in seconds, either way. */
export const replayWindowSeconds = ${replayWindowSeconds};
`;
}

function accessOf(route: Route): string {
  const scopes = scopesOf(route).map((scope) => `\`${scope}\``);
  if (scopes.length === 0) return 'any key';
  return `scope${scopes.length > 1 ? 's' : ''} ${scopes.join(' and ')} (permission \`${permissionOf(route)}\`)`;
}

function operationType(name: string, route: Route): string {
  const fields: string[] = [];
  if (route.params) fields.push(`params: ${typeOf(refer(route.params), 2)};`);
  if (route.query) fields.push(`query: ${typeOf(refer(route.query), 2)};`);
  if (route.body) fields.push(`body: ${typeOf(refer(route.body), 2)};`);
  fields.push(`result: ${typeOf(refer(route.result), 2)};`);
  const doc = comment(
    `${route.summary}. ${route.description ? `${route.description} ` : ''}\`${route.method} /api/v1${route.path}\`, ${accessOf(route)}.`,
    '  ',
  );
  return `${doc}  ${name}: {\n${fields.map((field) => `    ${field}\n`).join('')}  };`;
}

function declaration(name: string, schema: SchemaObject): string {
  const doc = comment(describe(schema), '');
  if (schema['x-shapes']) return `${doc}export type ${name} = ${shapesType(schema, schema['x-shapes'])};`;
  return schema.properties
    ? `${doc}export interface ${name} ${typeOf(schema, 0)}`
    : `${doc}export type ${name} = ${typeOf(schema, 0)};`;
}

/** The fields that all shapes have in common, and one object for each shape. An excluded field can be `undefined`, so that it can be read. */
function shapesType(schema: SchemaObject, shapes: readonly Shape[]): string {
  const { properties = {}, required = [] } = schema;
  const isOfShape = (name: string) =>
    shapes.some(({ values = {}, requires = [], excludes = [] }) =>
      [...Object.keys(values), ...requires, ...excludes].includes(name),
    );
  const own = Object.entries(properties).filter(([name]) => isOfShape(name));
  const common = Object.fromEntries(Object.entries(properties).filter(([name]) => !isOfShape(name)));
  const each = shapes.map(({ values = {}, requires = [], excludes = [] }) => {
    const fields = own.map(([name, property]): [string, SchemaObject] => {
      if (excludes.includes(name)) return [name, { ...property, 'x-excluded': true }];
      const only = values[name];
      if (only) return [name, { ...property, enum: [...only] }];
      return [name, requires.includes(name) ? withoutNull(property) : property];
    });
    const shape = { ...schema, properties: Object.fromEntries(fields), required: [...required, ...requires] };
    return objectType(shape, 0);
  });
  return `${objectType({ ...schema, properties: common }, 0)} & (${each.join(' | ')})`;
}

function withoutNull(schema: SchemaObject): SchemaObject {
  return Array.isArray(schema.type) ? { ...schema, type: schema.type.filter((type) => type !== 'null') } : schema;
}

function isNullable(schema: SchemaObject): boolean {
  return [schema.type].flat().includes('null') || (schema.anyOf ?? []).some(isNullable);
}

/** The TypeScript type of a schema; `depth` is how deep its lines are indented. */
function typeOf(schema: SchemaObject, depth: number): string {
  if (schema['x-excluded']) return isNullable(schema) ? 'null' : 'undefined';
  if (schema.$ref !== undefined) return schema.$ref.slice(componentPrefix.length);
  if (schema['x-prefixes']) return union(schema['x-prefixes'].map((prefix) => `\`${prefix}\${string}\``));
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return union(schema.enum.map(literal));
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return union(either.map((one) => typeOf(one, depth)));
  if (schema.type === undefined) return 'unknown';
  return union([schema.type].flat().map((type) => simpleType(type, schema, depth)));
}

function simpleType(type: string, schema: SchemaObject, depth: number): string {
  switch (type) {
    case 'integer':
      return 'number';
    case 'string':
      return schema.format === 'binary' ? 'Blob' : type;
    case 'number':
    case 'boolean':
    case 'null':
      return type;
    case 'array':
      return arrayType(schema, depth);
    case 'object':
      return objectType(schema, depth);
    default:
      throw new Error(`no TypeScript type for the JSON type ${type}`);
  }
}

function arrayType({ items = {}, minItems, maxItems }: SchemaObject, depth: number): string {
  const item = typeOf(items, depth);
  if (typeof minItems === 'number' && minItems === maxItems) return `[${Array(minItems).fill(item).join(', ')}]`;
  return /[ |]/.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`;
}

function objectType(schema: SchemaObject, depth: number): string {
  const { properties, required = [], additionalProperties } = schema;
  if (!properties) {
    const value = typeof additionalProperties === 'object' ? typeOf(additionalProperties, depth) : 'unknown';
    return `Record<string, ${value}>`;
  }
  const indent = '  '.repeat(depth + 1);
  const lines = Object.entries(properties).map(([name, property]) => {
    const optional = !required.includes(name);
    // A caller may pass `undefined` for an absent field; a response never contains it.
    const absent = optional && additionalProperties === false ? ' | undefined' : '';
    const type = typeOf(property, depth + 1);
    return `${comment(describe(property), indent)}${indent}${name}${optional ? '?' : ''}: ${type}${type === 'unknown' || type === 'undefined' ? '' : absent};\n`;
  });
  return `{\n${lines.join('')}${'  '.repeat(depth)}}`;
}

function describe({ description, default: fallback }: SchemaObject): string {
  const parts = [description, fallback === undefined ? undefined : `Default: \`${JSON.stringify(fallback)}\`.`];
  return parts.filter((part) => part !== undefined).join(' ');
}

function comment(text: string, indent: string): string {
  return text === '' ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`;
}

function literal(value: unknown): string {
  return typeof value === 'string'
    ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    : JSON.stringify(value);
}

function union(types: string[]): string {
  return [...new Set(types)].join(' | ');
}

export const generatedFile = fileURLToPath(new URL('../src/types.generated.ts', import.meta.url));
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(generatedFile, generate());
