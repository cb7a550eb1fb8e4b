// Whether a schema fits another one that its values already match: a rule of an approval, and the schema of the tool's input.
//
// JSON Schema ignores what doesn't apply. A rule about a property that the input never has, or about the size of a number that is a
// string, would therefore always or never match, and a typing error would silently let calls run without the approval. Each part of
// a rule must be about something that the other schema says may be there.
import { didYouMean } from '@signalbox/contract/nearest';
import { SchemaDocument } from './document.ts';
import { ABOUT, isObject, isSchema, type SchemaNode, type SchemaObject } from './keywords.ts';
import {
  ANYTHING,
  anyOfPlaces,
  common,
  type JsonType,
  overlap,
  ownRange,
  ownTypes,
  type Place,
  RANGES,
  type RangeKind,
  SchemaView,
} from './place.ts';
import type { Problem } from './problem.ts';

/** What a text lists at most. */
const MAX_LISTED = 12;
/** More than anyone fixes at once. */
const MAX_PROBLEMS = 20;
/** How often a part is entered on the way to itself by references. */
const MAX_VISITS = 2;

interface Check {
  /** Whether names are refused at places where the schema says nothing of any property. */
  readonly refusesUndescribed: boolean;
  /** Whether only names are checked, and not values. */
  readonly onlyNames: boolean;
  /** Where the names are looked for, in an error. */
  readonly where: string;
}

const INPUT_SCHEMA = 'the inputSchema';

/** The parts of a rule that no input can match, or that have no effect. Throws if the schemas are too large to be compared. */
export function ruleProblems(
  rule: SchemaObject,
  inputSchema: SchemaObject,
  { refusesUndescribed }: Pick<Check, 'refusesUndescribed'>,
): Problem[] {
  const view = new SchemaView(new SchemaDocument(inputSchema));
  const walk = new Walk(view, new SchemaDocument(rule), { refusesUndescribed, onlyNames: false, where: INPUT_SCHEMA });
  walk.visit(rule, inputOf(view, inputSchema), '');
  return walk.problems;
}

/** Names that a schema requires of properties that it does not have. */
export function requiredProblems(schema: SchemaObject): Problem[] {
  const document = new SchemaDocument(schema);
  const view = new SchemaView(document);
  const walk = new Walk(view, document, { refusesUndescribed: false, onlyNames: true, where: '"properties"' });
  walk.visit(schema, view.at(schema), '');
  return walk.problems;
}

/** Paths into an input, such as `customer.id`, that lead to nothing. */
export function pathProblems(paths: readonly string[], inputSchema: SchemaObject): Problem[] {
  const view = new SchemaView(new SchemaDocument(inputSchema));
  const input = inputOf(view, inputSchema);
  const problems: Problem[] = [];
  for (const path of paths) {
    const message = pathProblem(view, input, path);
    if (message !== undefined) problems.push({ path, message });
    if (problems.length === MAX_PROBLEMS) break;
  }
  return problems;
}

function pathProblem(view: SchemaView, input: Place, path: string): string | undefined {
  let place = input;
  for (const name of path.split('.')) {
    const types = view.types(place);
    if (types.has('array') && /^\d+$/.test(name)) {
      place = types.has('object') ? ANYTHING : view.item(place, Number(name));
      continue;
    }
    if (!types.has('object')) return `is not in the inputSchema: it says ${typesText(types)}`;
    const { standing, place: inner } = view.property(place, name);
    if (standing === 'missing' || standing === 'closed') return missingText(view, place, name, INPUT_SCHEMA);
    if (standing !== 'declared') return undefined;
    place = inner;
  }
  return undefined;
}

/** The input as a whole, which is always an object. */
function inputOf(view: SchemaView, schema: SchemaObject): Place {
  return view.at({ type: 'object', allOf: [schema] });
}

class Walk {
  readonly problems: Problem[] = [];
  readonly #view: SchemaView;
  readonly #document: SchemaDocument;
  readonly #check: Check;
  readonly #visits = new Map<SchemaObject, number>();

  constructor(view: SchemaView, document: SchemaDocument, check: Check) {
    this.#view = view;
    this.#document = document;
    this.#check = check;
  }

  /** A part of the rule, and the place that it is about. */
  visit(node: SchemaNode, place: Place, path: string): void {
    this.#view.step();
    if (typeof node !== 'object') return;
    const visits = this.#visits.get(node) ?? 0;
    if (visits >= MAX_VISITS) return;
    this.#visits.set(node, visits + 1);
    if (!this.#check.onlyNames) this.#checkValue(node, place, path);
    if (this.#view.types(place).has('object')) {
      this.#checkNames(node, place, path);
      this.#visitProperties(node, place, path);
    }
    if (this.#view.types(place).has('array')) this.#visitItems(node, place, path);
    this.#visitSamePlace(node, place, path);
    this.#visits.set(node, visits);
  }

  #problem(path: string, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push({ path: path.replace(/^\./, ''), message });
  }

  #visitSamePlace(node: SchemaObject, place: Place, path: string): void {
    for (const keyword of ['allOf', 'anyOf', 'oneOf'])
      for (const [index, one] of listOf(node[keyword]).entries())
        if (isSchema(one)) this.visit(one, place, `${path}.${keyword}[${index}]`);
    for (const keyword of ['not', 'if', 'then', 'else']) {
      const one = node[keyword];
      if (isSchema(one)) this.visit(one, place, `${path}.${keyword}`);
    }
    for (const keyword of ['dependentSchemas', 'dependencies'])
      for (const [name, one] of entriesOf(node[keyword]))
        if (isSchema(one)) this.visit(one, place, `${path}.${keyword}.${name}`);
    for (const target of this.#document.targets(node)) this.visit(target, place, `${path}.$ref`);
  }

  #visitProperties(node: SchemaObject, place: Place, path: string): void {
    const view = this.#view;
    for (const [name, one] of entriesOf(node.properties))
      if (isSchema(one)) this.visit(one, view.property(place, name).place, `${path}.properties.${name}`);
    const names = view.names(place);
    const others = this.#undeclared(place);
    const anyOf = (some: readonly string[]) =>
      anyOfPlaces([...some.map((name) => view.property(place, name).place), ...(others ? [others] : [])]);
    for (const [pattern, one] of entriesOf(node.patternProperties)) {
      const at = `${path}.patternProperties.${pattern}`;
      const matched = names.filter((name) => new RegExp(pattern, 'u').test(name));
      if (matched.length === 0 && !others && !this.#check.onlyNames)
        this.#problem(at, `matches no property: the inputSchema has ${listed(names) || 'none'} here`);
      if (isSchema(one)) this.visit(one, anyOf(matched), at);
    }
    for (const keyword of ['additionalProperties', 'unevaluatedProperties']) {
      const one = node[keyword];
      if (isSchema(one)) this.visit(one, anyOf(names.filter((name) => !isNamedBy(node, name))), `${path}.${keyword}`);
    }
    if (!this.#check.onlyNames && isSchema(node.propertyNames)) {
      const name: SchemaObject = { type: 'string', ...(!others && { enum: names }) };
      this.visit(node.propertyNames, { schema: name }, `${path}.propertyNames`);
    }
  }

  /** The place of a property that is not declared; undefined if there can be none. */
  #undeclared(place: Place): Place | undefined {
    // No schema declares a property of this name.
    const { standing, place: inner } = this.#view.property(place, '\0');
    const isPossible = standing !== 'missing' && standing !== 'closed';
    return isPossible && !(standing === 'undescribed' && this.#check.refusesUndescribed) ? inner : undefined;
  }

  #visitItems(node: SchemaObject, place: Place, path: string): void {
    const view = this.#view;
    const any = view.item(place);
    for (const keyword of ['items', 'contains', 'additionalItems', 'unevaluatedItems']) {
      const one = node[keyword];
      if (isSchema(one)) this.visit(one, any, `${path}.${keyword}`);
    }
    for (const keyword of ['prefixItems', 'items'])
      for (const [index, one] of listOf(node[keyword]).entries())
        if (isSchema(one)) this.visit(one, view.item(place, index), `${path}.${keyword}[${index}]`);
  }

  /** Each name once, at the first part that has it. */
  #checkNames(node: SchemaObject, place: Place, path: string): void {
    const seen = new Set<string>();
    for (const { name, at, isQuoted } of namesIn(node)) {
      if (seen.has(name) || this.problems.length === MAX_PROBLEMS) continue;
      seen.add(name);
      const { standing } = this.#view.property(place, name);
      const isRefused =
        standing === 'missing' ||
        standing === 'closed' ||
        (standing === 'undescribed' && this.#check.refusesUndescribed);
      if (!isRefused) continue;
      const subject = isQuoted ? `${JSON.stringify(name)} ` : '';
      this.#problem(`${path}.${at}`, `${subject}${missingText(this.#view, place, name, this.#check.where)}`);
    }
  }

  #checkValue(node: SchemaObject, place: Place, path: string): void {
    const types = this.#view.types(place);
    if (node.type !== undefined && common(ownTypes({ type: node.type }), types).size === 0) {
      this.#problem(`${path}.type`, `can’t match: the inputSchema says ${typesText(types)} here`);
      return;
    }
    for (const keyword of Object.keys(node)) {
      const about = ABOUT[keyword];
      if (about !== undefined && !isOf(types, about))
        this.#problem(`${path}.${keyword}`, `has no effect: the inputSchema says ${typesText(types)} here`);
    }
    const values = 'const' in node ? [['const', node.const] as const] : [];
    const all = [...values, ...listOf(node.enum).map((value, index) => [`enum[${index}]`, value] as const)];
    for (const [at, value] of all)
      if (!this.#view.mayBe(place, value))
        this.#problem(`${path}.${at}`, `can’t match: ${this.#valuesText(place, value)}`);
    for (const kind of Object.keys(RANGES) as RangeKind[]) {
      const own = ownRange(node, kind);
      if (!isOf(types, kind) || overlap(own, this.#view.range(place, kind)) || !overlap(own, own)) continue;
      const keyword = RANGES[kind].flat().find((one) => one in node);
      this.#problem(`${path}.${keyword}`, `can’t match: it is outside of what the inputSchema allows here`);
    }
  }

  #valuesText(place: Place, value: unknown): string {
    const values = this.#view.values(place);
    if (values === undefined)
      return `the inputSchema says ${typesText(this.#view.types(place))} here, within its limits`;
    const texts = values.filter((one) => typeof one === 'string');
    return `the inputSchema has ${listed(values)} here.${typeof value === 'string' ? didYouMean(value, texts) : ''}`;
  }
}

/** The names that a part of a schema has for properties, with the keyword. */
function namesIn(node: SchemaObject): { name: string; at: string; isQuoted: boolean }[] {
  const keys = (keyword: string) =>
    entriesOf(node[keyword]).map(([name]) => ({ name, at: `${keyword}.${name}`, isQuoted: false }));
  const items = (list: unknown, at: string) =>
    listOf(list).flatMap((name, index) =>
      typeof name === 'string' ? [{ name, at: `${at}[${index}]`, isQuoted: true }] : [],
    );
  const dependent = ['dependentRequired', 'dependencies'].flatMap((keyword) =>
    entriesOf(node[keyword]).flatMap(([name, list]) => items(list, `${keyword}.${name}`)),
  );
  return [
    ...keys('properties'),
    ...items(node.required, 'required'),
    ...['dependentRequired', 'dependentSchemas', 'dependencies'].flatMap(keys),
    ...dependent,
  ];
}

function isNamedBy({ properties, patternProperties }: SchemaObject, name: string): boolean {
  if (isObject(properties) && Object.hasOwn(properties, name)) return true;
  return entriesOf(patternProperties).some(([pattern]) => new RegExp(pattern, 'u').test(name));
}

/** With the name that was probably meant, or the names that there are. */
function missingText(view: SchemaView, place: Place, name: string, where: string): string {
  const names = view.names(place);
  if (names.length === 0) return `is not in ${where}, which declares no properties here`;
  const hint = didYouMean(name, names);
  return `is not in ${where}${hint === '' ? `, which has ${listed(names)} here` : `.${hint}`}`;
}

function listed(values: readonly unknown[]): string {
  const some = values.slice(0, MAX_LISTED).map((value) => JSON.stringify(value).slice(0, 100).toWellFormed());
  return values.length > MAX_LISTED ? `${some.join(', ')} and ${values.length - MAX_LISTED} more` : some.join(', ');
}

function isOf(types: ReadonlySet<JsonType>, about: RangeKind): boolean {
  return about === 'number' ? types.has('integer') || types.has('fraction') : types.has(about);
}

function typesText(types: ReadonlySet<JsonType>): string {
  const names = [...types].map((type) => (type === 'fraction' ? 'number' : type));
  const shown = names.filter((name) => name !== 'integer' || !types.has('fraction'));
  return [...new Set(shown)].map((name) => JSON.stringify(name)).join(' or ');
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}
