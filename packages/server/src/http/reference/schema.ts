// Renders a JSON Schema for people: types, limits and fields as nested HTML lists.
import { componentPrefix, type SchemaObject } from '@signalbox/contract';
import type { OpenApiDocument } from './openapi.ts';

/** The fields of an object, with those of inner objects folded, down to `depth`. Empty if it has none. */
export function fieldList(document: OpenApiDocument, schema: SchemaObject, depth: number): string {
  const object = objectIn(document, schema);
  if (!object) return '';
  if (object.oneOf) return alternatives(document, object.oneOf, depth);
  const required = new Set(object.required);
  const items = Object.entries(object.properties ?? {}).map(([name, property]) => {
    const optional = required.has(name) ? '' : ' <span class="optional">optional</span>';
    const text = property.description ?? resolve(document, property).description;
    const limits = constraints(property);
    const inner = depth > 1 ? fieldList(document, property, depth - 1) : '';
    return `<li><code class="name">${escapeHtml(name)}</code> <span class="type">${typeName(property)}</span>${optional}${
      text ? `<p>${prose(text, true)}</p>` : ''
    }${limits && `<p class="limits">${limits}</p>`}${inner && `<details><summary>Fields</summary>${inner}</details>`}</li>`;
  });
  return items.length === 0 ? '' : `<ul class="fields">${items.join('')}</ul>`;
}

function alternatives(document: OpenApiDocument, schemas: SchemaObject[], depth: number): string {
  const items = schemas.map((one) => {
    const inner = depth > 1 ? fieldList(document, one, depth - 1) : '';
    return `<li>${typeName(one)}${inner && `<details><summary>Fields</summary>${inner}</details>`}</li>`;
  });
  return `<p class="limits">One of:</p><ul class="fields">${items.join('')}</ul>`;
}

/** The object that a schema describes, also as an item of a list or if it can be null; undefined if there is none. */
function objectIn(document: OpenApiDocument, schema: SchemaObject): SchemaObject | undefined {
  const { properties, oneOf, anyOf, items } = schema;
  if (schema.$ref) return objectIn(document, resolve(document, schema));
  if (properties || oneOf) return schema;
  if (items) return objectIn(document, items);
  return anyOf?.map((one) => objectIn(document, one)).find((one) => one !== undefined);
}

function resolve(document: OpenApiDocument, schema: SchemaObject): SchemaObject {
  return schema.$ref ? (document.components.schemas[schemaName(schema)] ?? {}) : schema;
}

/** The name of the component that a schema refers to. */
function schemaName({ $ref = '' }: SchemaObject): string {
  return $ref.slice(componentPrefix.length);
}

/** The type in words and links: `string`, `array of Chunk`, `"a" or "b"`, `WaitingFor or null`. HTML. */
export function typeName(schema: SchemaObject): string {
  if (schema.$ref) return `<a href="#schema-${schemaName(schema)}">${schemaName(schema)}</a>`;
  if (schema.const !== undefined) return value(schema.const);
  if (schema.enum) return schema.enum.map(value).join(' or ');
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return either.map(typeName).join(' or ');
  if (schema.type === undefined) return 'any JSON';
  return [schema.type]
    .flat()
    .map((type) => {
      if (type === 'array') return `array of ${typeName(schema.items ?? {})}`;
      if (type === 'object' && typeof schema.additionalProperties === 'object') {
        return `object of ${typeName(schema.additionalProperties)}`;
      }
      return type === 'string' && schema.format === 'date-time' ? 'time' : type;
    })
    .join(' or ');
}

/** Bounds and default, in words. HTML; empty if there are none. */
export function constraints(schema: SchemaObject): string {
  const { minimum, maximum, exclusiveMinimum, minLength, maxLength, minItems, maxItems, maxProperties } = schema;
  const words = [
    range(minimum, maximum),
    exclusiveMinimum !== undefined ? `more than ${exclusiveMinimum}` : '',
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' items'),
    range(undefined, maxProperties, ' entries'),
    schema.default !== undefined ? `default ${value(schema.default)}` : '',
  ];
  return words.filter((word) => word !== '').join(' · ');
}

function range(minimum: unknown, maximum: unknown, unit = ''): string {
  const number = (bound: unknown) => Number(bound).toLocaleString('en');
  if (minimum === undefined && maximum === undefined) return '';
  if (maximum === undefined) return `at least ${number(minimum)}${unit}`;
  return minimum === undefined ? `at most ${number(maximum)}${unit}` : `${number(minimum)}–${number(maximum)}${unit}`;
}

function value(constant: unknown): string {
  return `<code>${escapeHtml(JSON.stringify(constant))}</code>`;
}

/** Text with `code` and blank lines between paragraphs, as the contract's descriptions are written. HTML. */
export function prose(text: string, inline = false): string {
  const html = (part: string) => escapeHtml(part).replace(/`([^`]+)`/g, '<code>$1</code>');
  return inline
    ? html(text)
    : text
        .split(/\n{2,}/)
        .map((part) => `<p>${html(part)}</p>`)
        .join('\n');
}

/** The anchor of a heading. */
export function slug(text: string): string {
  return `tag-${text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
