// Completion of names and values, and what a name means on hover, from a JSON Schema.
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { syntaxTree } from '@codemirror/language';
import type { EditorState } from '@codemirror/state';
import type { EditorView, Tooltip } from '@codemirror/view';
import type { SyntaxNode } from '@lezer/common';
import { isValue, propertiesOf, stringOf, valueNodeOf } from './json-nodes.ts';
import {
  aboutSchemas,
  isSchema,
  type JsonSchema,
  schemasOf,
  schemasOfProperty,
  typeText,
  valuesOf,
} from './schema-at.ts';

export function completeFrom(root: JsonSchema): (context: CompletionContext) => CompletionResult | null {
  return ({ state, pos, explicit }) => {
    const place = placeAt(state, pos);
    if (!place) return null;
    const typed = state.sliceDoc(place.from, pos);
    if (!explicit && typed === '') return null;
    const options =
      'object' in place
        ? namesFor(state, root, place.object, place.property)
        : valuesFor(schemasOf(state, root, place.value));
    return options.length > 0 ? { from: place.from, to: place.to, options, filter: true } : null;
  };
}

type Place = { from: number; to: number } & ({ object: SyntaxNode; property?: SyntaxNode } | { value: SyntaxNode });

/** Whether a name or a value belongs at a position. */
function placeAt(state: EditorState, pos: number): Place | undefined {
  const node = syntaxTree(state).resolveInner(pos, -1);
  if (node.name === 'PropertyName' && node.parent?.parent) {
    return { from: node.from, to: node.to, object: node.parent.parent, property: node.parent };
  }
  if (isValue(node) && node.name !== 'Object' && node.name !== 'Array') {
    return { from: node.from, to: node.to, value: node };
  }
  const container = node.name === '⚠' || !isContainer(node) ? node.parent : node;
  // An incomplete word, such as `tr` or `"na`.
  const before = /"?[\w-]*$/.exec(state.sliceDoc(Math.max(0, pos - 100), pos))?.[0] ?? '';
  const from = pos - before.length;
  if (node.name === '⚠' && container?.name === 'Property') return { from, to: pos, value: node };
  if (container?.name === 'Object') return { from, to: pos, object: container };
  if (container?.name === 'Property') return { from, to: pos, value: { ...spot(container), from } as SyntaxNode };
  return undefined;
}

function isContainer({ name }: SyntaxNode): boolean {
  return name === 'Object' || name === 'Array' || name === 'Property';
}

/** A place in a property that has no value yet. */
function spot(property: SyntaxNode): Partial<SyntaxNode> {
  return { parent: property, name: '⚠' } as Partial<SyntaxNode>;
}

function namesFor(state: EditorState, root: JsonSchema, object: SyntaxNode, property?: SyntaxNode): Completion[] {
  const own = property?.getChild('PropertyName');
  const taken = new Set(propertiesOf(state, object).map(({ name }) => name));
  if (own) taken.delete(stringOf(state, own));
  const hasValue = property !== undefined && /:/.test(state.sliceDoc(own?.to ?? property.from, property.to));
  const schemas = schemasOf(state, root, object);
  const required = new Set(schemas.flatMap((schema) => (Array.isArray(schema.required) ? schema.required : [])));
  const names = new Set(schemas.flatMap(({ properties }) => (isSchema(properties) ? Object.keys(properties) : [])));
  return [...names]
    .filter((name) => !taken.has(name))
    .map((name) => {
      const of = schemasOfProperty(state, root, object, name);
      const about = aboutSchemas(of).join('\n');
      return {
        label: JSON.stringify(name),
        detail: typeText(of),
        type: 'property',
        boost: required.has(name) ? 1 : 0,
        apply: hasValue ? JSON.stringify(name) : `${JSON.stringify(name)}: ${startOf(of)}`,
        ...(about !== '' && { info: about }),
      };
    });
}

/** A value to start with. */
function startOf(schemas: readonly JsonSchema[]): string {
  for (const schema of schemas) {
    if ('const' in schema) return JSON.stringify(schema.const);
    if (schema.default !== undefined) return JSON.stringify(schema.default);
    if (schema.type === 'object' || isSchema(schema.properties)) return '{}';
    if (schema.type === 'array') return '[]';
    if (schema.type === 'string' && !schema.enum) return '""';
  }
  return '';
}

function valuesFor(schemas: readonly JsonSchema[]): Completion[] {
  const values = schemas.flatMap((schema) => [
    ...valuesOf(schema),
    ...(schema.default === undefined ? [] : [schema.default]),
    ...(Array.isArray(schema.examples) ? schema.examples : []),
  ]);
  return [...new Set(values.map((value) => JSON.stringify(value)))].map((label) => ({ label, type: 'enum' }));
}

const MOST_VALUES = 20;

export function hoverFrom(root: JsonSchema): (view: EditorView, pos: number) => Tooltip | null {
  return ({ state }, pos) => {
    const node = syntaxTree(state).resolveInner(pos, 1);
    if (node.name !== 'PropertyName' || !node.parent?.parent) return null;
    const name = stringOf(state, node);
    const schemas = schemasOfProperty(state, root, node.parent.parent, name, valueNodeOf(node.parent));
    if (schemas.length === 0) return null;
    return {
      pos: node.from,
      end: node.to,
      above: true,
      create: () => {
        const dom = document.createElement('div');
        dom.className = 'schema-help';
        const heading = document.createElement('strong');
        heading.textContent = [name, typeText(schemas)].filter(Boolean).join(': ');
        dom.append(heading, ...helpLines(schemas).map(paragraph));
        return { dom };
      },
    };
  };
}

function helpLines(schemas: readonly JsonSchema[]): string[] {
  const values = [...new Set(schemas.flatMap(valuesOf).map((value) => JSON.stringify(value)))];
  const defaults = schemas.flatMap((schema) => (schema.default === undefined ? [] : [JSON.stringify(schema.default)]));
  return [
    ...aboutSchemas(schemas),
    ...(values.length > 1 && values.length <= MOST_VALUES ? [`One of ${values.join(', ')}.`] : []),
    ...(defaults.length > 0 ? [`Default: ${defaults[0]}.`] : []),
  ];
}

function paragraph(text: string): HTMLElement {
  const element = document.createElement('p');
  element.textContent = text;
  return element;
}
