// The schema of a tool's input as a server accepts it. It allows what the tool's own schema allows, and here and there more: a call is
// always validated against the tool's own.
//
// Parts that a server refuses are replaced by others that say the same, as far as there are any: references by what they refer to,
// parts that apply together by one part, and the alternatives of the root by one object.
import { isSameJson } from '../../lib/json/same-json.ts';
import { SchemaDocument } from '../../schemas/document.ts';
import { ABOUT, isObject, isSchema, MAPS, type SchemaNode, type SchemaObject } from '../../schemas/keywords.ts';
import { formsOf } from './forms.ts';
import { allOf, anyOfObjects, listed, typesOf } from './merge.ts';
import { modern } from './modern.ts';
import { openApi } from './open-api.ts';
import type { SchemaRules } from './rules.ts';

export interface SentSchema {
  readonly schema: SchemaObject;
  /** What the schema does not say, for the description of the tool. */
  readonly note: string;
}

/** A schema that can't be sent; the message says why, as in "has a schema that …". */
export class UnsayableSchema extends Error {}

/** How often a part that refers to itself is repeated within itself. */
const MAX_REPEATED = 2;
/** Then references are not followed any more. Parts that refer to others twice double at each level. */
const FOLLOWED_MAX_PARTS = 1500;
const MAX_PARTS = 15_000;
/** How many cases one part may have. */
const MAX_CASES = 32;

/** How often each part that is referred to was entered on the way to a place. */
type Way = ReadonlyMap<SchemaNode, number>;
/** A part without references and alternatives. */
interface Case {
  readonly node: SchemaObject;
  readonly way: Way;
}

/** `sentNames`: the names of properties that are sent by another name. Throws `UnsayableSchema`. */
export function schemaFor(
  schema: SchemaObject,
  rules: SchemaRules,
  sentNames: ReadonlyMap<string, string>,
): SentSchema {
  const { schema: built, note } = new Rewriter(schema, rules, sentNames).sent();
  const sent = rules.isOpenApi ? openApi(built) : built;
  return { schema: isSameJson(sent, schema) ? schema : sent, note };
}

class Rewriter {
  readonly #root: SchemaObject;
  readonly #rules: SchemaRules;
  readonly #names: ReadonlyMap<string, string>;
  readonly #document: SchemaDocument;
  /** Parts that others refer to, if they may, by their name. */
  readonly #shared = new Map<SchemaNode, { readonly name: string; schema?: SchemaObject }>();
  #parts = 0;

  constructor(root: SchemaObject, rules: SchemaRules, names: ReadonlyMap<string, string>) {
    this.#root = root;
    this.#rules = rules;
    this.#names = names;
    this.#document = new SchemaDocument(root);
  }

  sent(): SentSchema {
    const cases = this.#cases(this.#root, new Map([[this.#root, 1]])).filter(({ node }) => takesObject(node));
    const [first, ...others] = cases.map(({ node }) => ({ ...node, type: 'object' }));
    if (!first) throw new UnsayableSchema('allows no object');
    const way = cases.map((one) => one.way).reduce(farther);
    const { not, enum: values, const: _, ...root } = anyOfObjects([first, ...others]);
    const whole = { type: 'object', properties: {}, ...root };
    const schema = this.#rules.combines ? this.#built(whole, way) : this.#typed(whole, way)!;
    const shared = [...this.#shared.values()].map((one) => [one.name, one.schema!] as const);
    const $defs = shared.length > 0 && { $defs: Object.fromEntries(shared) };
    return { schema: { ...schema, ...$defs }, note: formsOf([first, ...others], { not, values }, this.#names) };
  }

  /** A part that is not the root. Undefined: it allows nothing. */
  #part(part: SchemaNode, way: Way): SchemaObject | undefined {
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) throw new UnsayableSchema('has too many parts');
    if (part === false) return undefined;
    if (this.#rules.combines) return this.#combined(part === true ? {} : modern(part), part, way);
    return this.#plain(part, way);
  }

  /** Where parts may refer to others. `given`: the part as it is in the document, which is where its reference is known. */
  #combined(node: SchemaObject, given: SchemaNode, way: Way): SchemaObject {
    const [target] = isObject(given) ? this.#document.targets(given) : [];
    const { $ref, $dynamicRef, ...rest } = node;
    const built = this.#built(rest, way);
    return target === undefined ? built : { $ref: this.#share(target, way), ...built };
  }

  #share(target: SchemaNode, way: Way): string {
    if (target === this.#root) return '#';
    let shared = this.#shared.get(target);
    if (!shared) {
      shared = { name: this.#nameOf(target) };
      this.#shared.set(target, shared);
      shared.schema = this.#part(target, way) ?? { not: {} };
    }
    return `#/$defs/${shared.name}`;
  }

  #nameOf(target: SchemaNode): string {
    const { $defs = {}, definitions = {} } = this.#root as Record<string, Record<string, unknown>>;
    const [own = ''] = [...Object.entries($defs), ...Object.entries(definitions)].find(([, it]) => it === target) ?? [];
    const used = new Set([...this.#shared.values()].map(({ name }) => name));
    return /^[A-Za-z0-9_.-]{1,64}$/.test(own) && !used.has(own) ? own : `part${this.#shared.size + 1}`;
  }

  /** Where they may not. */
  #plain(part: SchemaNode, way: Way): SchemaObject | undefined {
    const cases = this.#cases(part, way);
    const [first, ...others] = cases;
    if (!first) return undefined;
    if (others.length === 0) return this.#typed(first.node, first.way);
    const nodes = cases.map(({ node }) => node) as [SchemaObject, ...SchemaObject[]];
    const isOneObject = nodes.every(
      (node) => isSameJson(node.type, 'object') && hasOnlyOther(node, nodes[0], 'required'),
    );
    if (isOneObject) {
      const built = this.#typed(anyOfObjects(nodes), cases.map((one) => one.way).reduce(farther));
      return built && described(built, built.description, formsOf(nodes, {}, this.#names));
    }
    const description = isObject(part) ? part.description : undefined;
    const isTheirs = description !== undefined && nodes.every((node) => node.description === description);
    const alternatives = cases.flatMap(({ node: { description: own, ...node }, way }) => {
      const built = this.#typed({ ...node, ...(own !== undefined && !isTheirs && { description: own }) }, way);
      if (built === undefined) return [];
      return Array.isArray(built.anyOf) ? (built.anyOf as SchemaObject[]) : [built];
    });
    return this.#listing(alternatives, isTheirs ? { description } : {});
  }

  #listing(alternatives: readonly SchemaObject[], about: SchemaObject): SchemaObject | undefined {
    const different = alternatives.filter((one, at) => alternatives.findIndex((it) => isSameJson(it, one)) === at);
    const [first] = different;
    if (different.length < 2) return first && { ...about, ...first };
    if (different.every((one) => listed(one) && one.type === first?.type)) {
      const values = different.flatMap((one) => [...listed(one)!]);
      return { ...about, ...first, enum: [...new Set(values)] };
    }
    return { ...about, anyOf: different };
  }

  /** A part without alternatives. Its type is guessed from what it says, if it has none. */
  #typed(node: SchemaObject, way: Way): SchemaObject | undefined {
    const { const: value, ...rest } = node;
    const plain: SchemaObject = Object.fromEntries(
      Object.entries('const' in node ? { ...rest, enum: [value] } : rest).filter(([key]) => !COMBINING.has(key)),
    );
    const type = plain.type ?? guessedType(plain);
    if (type === undefined && this.#rules.needsTypes) {
      const about = plain.description === undefined ? {} : { description: plain.description };
      return this.#listing(Array.isArray(plain.enum) ? byType(plain.enum as unknown[]) : ANYTHING, about);
    }
    // A pattern would allow more properties than are listed.
    const { additionalProperties, ...others } = plain;
    const isOpen = 'patternProperties' in node && additionalProperties === false;
    const required = (plain.required as string[] | undefined) ?? [];
    const declared = plain.properties as Record<string, unknown> | undefined;
    const missing = required.filter((name) => !Object.hasOwn(declared ?? {}, name)).map((name) => [name, {}]);
    return this.#built(
      {
        ...(type !== undefined && { type }),
        ...others,
        ...(additionalProperties !== undefined && !isOpen && { additionalProperties }),
        ...(missing.length > 0 && { properties: { ...declared, ...Object.fromEntries(missing) } }),
      },
      way,
    );
  }

  /** The part with its parts as they are sent. */
  #built(node: SchemaObject, way: Way): SchemaObject {
    const built: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(node)) {
      if (REMOVED.has(keyword)) continue;
      if (keyword === 'properties') {
        built.properties = this.#properties(value as Record<string, SchemaNode>, way);
      } else if (keyword === 'required') {
        built.required = (value as string[]).map((name) => this.#sentName(name));
      } else if (keyword === 'dependentRequired') {
        const lists = Object.entries(value as Record<string, string[]>);
        built[keyword] = Object.fromEntries(
          lists.map(([name, all]) => [this.#sentName(name), all.map((one) => this.#sentName(one))]),
        );
      } else if (MAPS.has(keyword)) {
        const parts = Object.entries(value as Record<string, SchemaNode>);
        const nameOf = (name: string) => (keyword === 'dependentSchemas' ? this.#sentName(name) : name);
        built[keyword] = Object.fromEntries(
          parts.map(([name, part]) => [nameOf(name), this.#part(part, way) ?? false]),
        );
      } else if (PARTS.has(keyword) && isSchema(value)) {
        built[keyword] = typeof value === 'boolean' && keyword !== 'items' ? value : (this.#part(value, way) ?? false);
      } else if (PARTS.has(keyword) && Array.isArray(value)) {
        built[keyword] = value.map((part) => this.#part(part, way) ?? { not: {} });
      } else {
        built[keyword] = value;
      }
    }
    return this.#withItems(built, node, way);
  }

  #properties(properties: Record<string, SchemaNode>, way: Way): Record<string, unknown> {
    const sent = Object.entries(properties).flatMap(([name, part]) => {
      const built = this.#part(part, way);
      return built ? [[this.#sentName(name), this.#names.has(name) ? named(name, built) : built] as const] : [];
    });
    return Object.fromEntries(sent);
  }

  #sentName(name: string): string {
    return this.#names.get(name) ?? name;
  }

  /** Every list says of what it is. */
  #withItems(built: Record<string, unknown>, { prefixItems, items }: SchemaObject, way: Way): SchemaObject {
    const isList = typesOf(built)?.includes('array') ?? (prefixItems !== undefined || items !== undefined);
    if (!isList) return built;
    if (prefixItems === undefined || this.#rules.tuples === 'prefixItems') {
      if (items === undefined && prefixItems === undefined) built.items = this.#part({}, way)!;
      return built;
    }
    const positions = prefixItems as SchemaNode[];
    delete built.prefixItems;
    const all = isObject(items) ? [...positions, items] : positions;
    built.items = this.#part(all.length === 1 ? all[0]! : { anyOf: all }, way) ?? this.#part({}, way)!;
    if (items === false) built.maxItems = Math.min((built.maxItems as number) ?? positions.length, positions.length);
    return built;
  }

  /** The alternatives of a part, with all that applies to each of them. */
  #cases(part: SchemaNode, way: Way): Case[] {
    if (typeof part === 'boolean') return part ? [{ node: {}, way }] : [];
    const { $ref, $dynamicRef, allOf: all, anyOf, oneOf, if: condition, then, else: otherwise, ...rest } = modern(part);
    const { dependentSchemas, ...own } = rest;
    let cases: Case[] = [{ node: own, way }];
    for (const target of this.#document.targets(part)) cases = product(cases, this.#followed(target, way));
    for (const one of schemasOf(all)) cases = product(cases, this.#cases(one, way));
    const choices = [anyOf, oneOf].filter((list) => Array.isArray(list)).map(schemasOf);
    if (isSchema(condition))
      choices.push([{ allOf: [condition, isSchema(then) ? then : true] }, isSchema(otherwise) ? otherwise : true]);
    for (const [name, needed] of Object.entries(isObject(dependentSchemas) ? dependentSchemas : {}))
      choices.push([true, { required: [name], allOf: schemasOf([needed]) }]);
    for (const list of choices)
      cases = product(
        cases,
        list.flatMap((one) => this.#cases(one, way)),
      );
    return cases;
  }

  #followed(target: SchemaNode, way: Way): Case[] {
    const before = way.get(target) ?? 0;
    if (before < MAX_REPEATED && this.#parts < FOLLOWED_MAX_PARTS)
      return this.#cases(target, new Map([...way, [target, before + 1]]));
    if (typeof target === 'boolean') return this.#cases(target, way);
    const { type = target.properties ? 'object' : undefined, description } = target;
    return [{ node: { ...(type !== undefined && { type }), ...(description !== undefined && { description }) }, way }];
  }
}

/** Keywords that are not sent to any server: what they are for has no place in the definition of a tool. */
const REMOVED = new Set(
  `$schema $id id $comment $vocabulary $anchor $dynamicAnchor $recursiveAnchor $recursiveRef $defs definitions propertyNames`.split(
    ' ',
  ),
);
/** Keywords that only servers know that take everything. */
const COMBINING = new Set(
  `not patternProperties unevaluatedProperties unevaluatedItems dependentRequired dependentSchemas contains minContains maxContains
  contentSchema allOf anyOf oneOf if then else`.split(/\s+/),
);
/** Keywords that have a part, or a list of parts. */
const PARTS = new Set(
  `items prefixItems additionalProperties allOf anyOf oneOf not if then else contains unevaluatedItems unevaluatedProperties
  contentSchema`.split(/\s+/),
);
const ANYTHING: readonly SchemaObject[] = [
  { type: 'string' },
  { type: 'number' },
  { type: 'boolean' },
  { type: 'object', properties: {} },
  { type: 'array', items: { type: 'string' } },
  { type: 'null' },
];

/** All that match one of each. If there are too many, the second choice is left open. */
function product(cases: readonly Case[], others: readonly Case[]): Case[] {
  if (others.length > 1 && cases.length * others.length > MAX_CASES) return [...cases];
  return cases.flatMap((one) =>
    others.flatMap((other) => {
      const node = allOf(one.node, other.node);
      return node ? [{ node, way: farther(one.way, other.way) }] : [];
    }),
  );
}

function farther(one: Way, other: Way): Way {
  if (one === other) return one;
  return new Map([...one, ...[...other].filter(([part, times]) => times > (one.get(part) ?? 0))]);
}

function schemasOf(list: unknown): SchemaNode[] {
  return Array.isArray(list) ? list.filter(isSchema) : [];
}

function takesObject(node: SchemaObject): boolean {
  const values = 'const' in node ? [node.const] : node.enum;
  return (typesOf(node)?.includes('object') ?? true) && (!Array.isArray(values) || values.some(isObject));
}

/** Whether the parts are the same but for a keyword. */
function hasOnlyOther(one: SchemaObject, other: SchemaObject, keyword: string): boolean {
  return isSameJson({ ...one, [keyword]: null }, { ...other, [keyword]: null });
}

/** The type of the values that a part is about. */
function guessedType(node: SchemaObject): string | undefined {
  if (Array.isArray(node.enum)) {
    const types = byType(node.enum);
    return types.length === 1 ? (types[0]!.type as string) : undefined;
  }
  const [about] = Object.keys(node).flatMap((keyword) => ABOUT[keyword] ?? []);
  return about;
}

/** Values that are listed, by their type. */
function byType(values: readonly unknown[]): SchemaObject[] {
  const lists = new Map<string, unknown[]>();
  for (const value of values) {
    const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
    lists.set(type, [...(lists.get(type) ?? []), value]);
  }
  return [...lists].map(([type, list]) => ({
    type: type === 'number' && list.every(Number.isInteger) ? 'integer' : type,
    ...(type !== 'null' && { enum: list }),
    ...(type === 'array' && { items: { type: 'string' } }),
  }));
}

/** Says in the description which property the name replaces. */
function named(name: string, part: SchemaObject): SchemaObject {
  return described(part, `Named ${JSON.stringify(name)}.`, part.description);
}

function described(part: SchemaObject, ...texts: readonly unknown[]): SchemaObject {
  const description = texts.filter((text) => typeof text === 'string' && text !== '').join(' ');
  return description === '' ? part : { ...part, description };
}
