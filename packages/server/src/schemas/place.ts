// What a schema says of one place in a value: of the value as a whole, of a property, of an item.
//
// Several parts of a schema can be about the same place: what `allOf`, `$ref` and `properties` say of it applies together, of `anyOf`
// and `oneOf` one alternative does. A place is therefore a tree of parts. `not` and the condition of an `if` say nothing here, so
// a place may allow more than the schema does, but never less.
import { isDeepStrictEqual } from 'node:util';
import type { SchemaDocument } from './document.ts';
import { isObject, isSchema, type SchemaNode, type SchemaObject } from './keywords.ts';

export type Place =
  | { readonly schema: SchemaObject }
  | { readonly all: readonly Place[] }
  | { readonly any: readonly Place[] };

export const ANYTHING: Place = { schema: {} };

/**
 * Whether a property may be at a place.
 *
 * - `declared`: the schema names it, or a pattern that it matches.
 * - `open`: others than the declared ones are explicitly allowed (`additionalProperties`).
 * - `missing`: there are declared properties, and it is not one of them. By the letter of JSON Schema it is allowed, but the author
 *   did not think of it.
 * - `closed`: others are explicitly refused.
 * - `undescribed`: nothing is said of the properties.
 */
export type Standing = 'declared' | 'open' | 'missing' | 'closed' | 'undescribed';

const TYPES = ['null', 'boolean', 'object', 'array', 'string', 'integer', 'fraction'] as const;
/** A number is an integer or a fraction. */
export type JsonType = (typeof TYPES)[number];
const EVERY_TYPE: ReadonlySet<JsonType> = new Set(TYPES);

interface Bound {
  readonly value: number;
  readonly isExclusive: boolean;
}
export interface Range {
  readonly low: Bound | undefined;
  readonly high: Bound | undefined;
}
/** The keywords that limit what from below and from above. */
export const RANGES = {
  number: [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ],
  string: [['minLength'], ['maxLength']],
  array: [['minItems'], ['maxItems']],
  object: [['minProperties'], ['maxProperties']],
} as const;
export type RangeKind = keyof typeof RANGES;

/** More parts than any schema that a person wrote has. It bounds references that double at every level. */
const MAX_STEPS = 50_000;

/** The parts that led to one without leaving the value, because references may be circular. */
interface Around {
  readonly node: SchemaObject;
  readonly around: Around | undefined;
}

/** Throws if the schema is too large to be looked at. */
export class SchemaView {
  readonly #document: SchemaDocument;
  #steps = 0;
  readonly #types = new WeakMap<Place, ReadonlySet<JsonType>>();

  constructor(document: SchemaDocument) {
    this.#document = document;
  }

  step(): void {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS) throw new Error('The schema is too large');
  }

  at(node: SchemaNode, around?: Around): Place {
    this.step();
    if (typeof node !== 'object' || isAround(node, around)) return ANYTHING;
    const within = { node, around };
    const each = (value: unknown) =>
      Array.isArray(value) ? value.filter(isSchema).map((one) => this.at(one, within)) : [];
    const one = (value: unknown) => (isSchema(value) ? this.at(value, within) : ANYTHING);
    const { allOf, anyOf, oneOf, if: condition, then, else: otherwise, dependentSchemas } = node;
    const parts: Place[] = [{ schema: node }, ...each(allOf), ...each(this.#document.targets(node))];
    for (const list of [each(anyOf), each(oneOf)]) if (list.length > 0) parts.push(anyOfPlaces(list));
    if (condition !== undefined) parts.push(anyOfPlaces([one(then), one(otherwise)]));
    if (isObject(dependentSchemas))
      for (const value of Object.values(dependentSchemas)) parts.push(anyOfPlaces([one(value), ANYTHING]));
    return allOfPlaces(parts);
  }

  /** Whether the property may be at the place, and what is said of it there. */
  property(place: Place, name: string): { standing: Standing; place: Place } {
    return this.#inside(place, (schema) => this.#ownProperty(schema, name), 'object');
  }

  /** The place of the item with that index, or of any item. */
  item(place: Place, index?: number): Place {
    return this.#inside(place, (schema) => this.#ownItem(schema, index), 'array').place;
  }

  /** The names of all declared properties. */
  names(place: Place): string[] {
    const found = new Set<string>();
    const visit = (one: Place): void => {
      if ('schema' in one) {
        if (isObject(one.schema.properties)) for (const name of Object.keys(one.schema.properties)) found.add(name);
      } else for (const part of partsOf(one)) visit(part);
    };
    visit(place);
    return [...found];
  }

  /** Every type if nothing is said of it, or if what is said contradicts itself. */
  types(place: Place): ReadonlySet<JsonType> {
    const known = this.#types.get(place);
    if (known) return known;
    let types: ReadonlySet<JsonType>;
    if ('schema' in place) types = ownTypes(place.schema);
    else {
      const each = partsOf(place).map((part) => this.types(part));
      types = 'all' in place ? each.reduce(common, EVERY_TYPE) : new Set(each.flatMap((one) => [...one]));
      if (types.size === 0) types = EVERY_TYPE;
    }
    this.#types.set(place, types);
    return types;
  }

  /** The values of an enumeration; undefined if others may be there. */
  values(place: Place): readonly unknown[] | undefined {
    if ('schema' in place) {
      const { enum: values, const: only } = place.schema;
      return 'const' in place.schema ? [only] : Array.isArray(values) ? values : undefined;
    }
    const each = partsOf(place).map((part) => this.values(part));
    if ('all' in place) return each.find((values) => values !== undefined);
    return each.every((values) => values !== undefined) ? each.flat() : undefined;
  }

  /** Whether the value may be there, as far as its type, enumerations and limits say. */
  mayBe(place: Place, value: unknown): boolean {
    if ('all' in place) return place.all.every((part) => this.mayBe(part, value));
    if ('any' in place) return place.any.some((part) => this.mayBe(part, value));
    if (!ownTypes(place.schema).has(typeOf(value))) return false;
    const values = this.values(place);
    if (values && !values.some((one) => isDeepStrictEqual(one, value))) return false;
    if (typeof value === 'number') return isInRange(value, ownRange(place.schema, 'number'));
    return typeof value !== 'string' || isInRange([...value].length, ownRange(place.schema, 'string'));
  }

  range(place: Place, kind: RangeKind): Range {
    if ('schema' in place) return ownRange(place.schema, kind);
    const each = partsOf(place).map((part) => this.range(part, kind));
    if ('all' in place) return { low: highest(each.map(({ low }) => low)), high: lowest(each.map(({ high }) => high)) };
    const isOpen = (side: keyof Range) => each.some((one) => one[side] === undefined);
    return {
      low: isOpen('low') ? undefined : lowest(each.map(({ low }) => low)),
      high: isOpen('high') ? undefined : highest(each.map(({ high }) => high)),
    };
  }

  /** What all parts say of something inside the value. Alternatives that say nothing of it allow anything, unless they exclude it. */
  #inside(
    place: Place,
    own: (schema: SchemaObject) => { standing: Standing; place: Place },
    type: 'object' | 'array',
  ): { standing: Standing; place: Place } {
    if ('schema' in place) return own(place.schema);
    const parts = partsOf(place).filter((part) => this.types(part).has(type));
    const each = parts.map((part) => this.#inside(part, own, type));
    const order: Standing[] = 'all' in place ? STRICTEST_FIRST : MOST_OPEN_FIRST;
    const standing = order.find((one) => each.some((part) => part.standing === one)) ?? 'undescribed';
    const places = each.filter((part) => part.standing !== 'closed' || 'all' in place).map((part) => part.place);
    return { standing, place: 'all' in place ? allOfPlaces(places) : anyOfPlaces(places) };
  }

  #ownProperty(schema: SchemaObject, name: string): { standing: Standing; place: Place } {
    const { properties, patternProperties, additionalProperties, unevaluatedProperties } = schema;
    const said: SchemaNode[] = [];
    if (isObject(properties) && Object.hasOwn(properties, name) && isSchema(properties[name]))
      said.push(properties[name]);
    if (isObject(patternProperties))
      for (const [pattern, one] of Object.entries(patternProperties))
        if (isSchema(one) && new RegExp(pattern, 'u').test(name)) said.push(one);
    if (said.length > 0) return { standing: 'declared', place: allOfPlaces(said.map((one) => this.at(one))) };
    const others = additionalProperties ?? unevaluatedProperties;
    if (isSchema(others)) return { standing: others === false ? 'closed' : 'open', place: this.at(others) };
    return { standing: properties || patternProperties ? 'missing' : 'undescribed', place: ANYTHING };
  }

  #ownItem(schema: SchemaObject, index: number | undefined): { standing: Standing; place: Place } {
    const { items, prefixItems, additionalItems, unevaluatedItems } = schema;
    const list = [prefixItems, items].find((one) => Array.isArray(one)) ?? [];
    const first = (list as unknown[]).filter(isSchema);
    const rest = [Array.isArray(items) ? additionalItems : items, unevaluatedItems].find(isSchema);
    const others = rest === undefined ? ANYTHING : this.at(rest);
    if (index !== undefined) {
      const own = first[index];
      return { standing: 'undescribed', place: own === undefined ? others : this.at(own) };
    }
    const isOver = rest === false && first.length > 0;
    const places = [...first.map((one) => this.at(one)), ...(isOver ? [] : [others])];
    return { standing: 'undescribed', place: anyOfPlaces(places) };
  }
}

/** The order for parts that apply together. A part that refuses others refuses what it does not declare. */
const STRICTEST_FIRST: Standing[] = ['declared', 'closed', 'open', 'missing', 'undescribed'];
/** The order for alternatives. */
const MOST_OPEN_FIRST: Standing[] = ['declared', 'open', 'missing', 'closed', 'undescribed'];

function isAround(node: SchemaObject, around: Around | undefined): boolean {
  for (let one = around; one; one = one.around) if (one.node === node) return true;
  return false;
}

function allOfPlaces(places: readonly Place[]): Place {
  const parts = places.filter((one) => one !== ANYTHING).flatMap((one) => ('all' in one ? one.all : [one]));
  return parts.length === 0 ? ANYTHING : parts.length === 1 ? parts[0]! : { all: parts };
}

export function anyOfPlaces(places: readonly Place[]): Place {
  const parts = [...new Set(places.flatMap((one) => ('any' in one ? one.any : [one])))];
  return parts.length === 0 ? ANYTHING : parts.length === 1 ? parts[0]! : { any: parts };
}

function partsOf(place: { all: readonly Place[] } | { any: readonly Place[] }): readonly Place[] {
  return 'all' in place ? place.all : place.any;
}

/** The types that a schema names, or the types of the values that it lists. */
export function ownTypes(schema: SchemaObject): ReadonlySet<JsonType> {
  const { type, enum: values } = schema;
  const named = type === undefined ? EVERY_TYPE : new Set([type].flat().flatMap((one) => typesNamed(String(one))));
  const listed = 'const' in schema ? [schema.const] : Array.isArray(values) ? values : undefined;
  const types = listed ? common(named, new Set(listed.map(typeOf))) : named;
  return types.size === 0 ? named : types;
}

/** The types that are in both. */
export function common(a: ReadonlySet<JsonType>, b: ReadonlySet<JsonType>): ReadonlySet<JsonType> {
  return new Set([...a].filter((type) => b.has(type)));
}

function typesNamed(name: string): JsonType[] {
  return name === 'number' ? ['integer', 'fraction'] : TYPES.filter((type) => type === name);
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction';
  return typeof value as JsonType;
}

export function ownRange(schema: SchemaObject, kind: RangeKind): Range {
  const [lows, highs] = RANGES[kind];
  const bounds = (keywords: readonly string[]) =>
    keywords.map((keyword): Bound | undefined => {
      const value = schema[keyword];
      return typeof value === 'number' ? { value, isExclusive: keyword.startsWith('exclusive') } : undefined;
    });
  return { low: highest(bounds(lows)), high: lowest(bounds(highs)) };
}

/** Whether something is in both. */
export function overlap(a: Range, b: Range): boolean {
  return isBelow(highest([a.low, b.low]), lowest([a.high, b.high]));
}

function isBelow(low: Bound | undefined, high: Bound | undefined): boolean {
  if (!low || !high) return true;
  return low.value < high.value || (low.value === high.value && !low.isExclusive && !high.isExclusive);
}

function isInRange(value: number, range: Range): boolean {
  const bound = { value, isExclusive: false };
  return overlap(range, { low: bound, high: bound });
}

function highest(bounds: readonly (Bound | undefined)[]): Bound | undefined {
  return sorted(bounds, 1).at(-1);
}

function lowest(bounds: readonly (Bound | undefined)[]): Bound | undefined {
  return sorted(bounds, -1)[0];
}

/** By value. Of equal ones, the exclusive one is the narrower: last for `narrower` 1, first for -1. */
function sorted(bounds: readonly (Bound | undefined)[], narrower: 1 | -1): Bound[] {
  return bounds
    .filter((one) => one !== undefined)
    .toSorted((a, b) => a.value - b.value || narrower * (Number(a.isExclusive) - Number(b.isExclusive)));
}
