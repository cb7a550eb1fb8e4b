import { describe, expect, test } from 'vitest';
import { pathProblems, requiredProblems, ruleProblems } from './fit.ts';

const refund = {
  type: 'object',
  properties: {
    order: { type: 'string', maxLength: 10 },
    cents: { type: 'integer', maximum: 1000 },
    currency: { enum: ['EUR', 'USD'] },
    note: { type: ['string', 'null'] },
    items: {
      type: 'array',
      items: { type: 'object', properties: { sku: { type: 'string' }, count: { type: 'integer' } } },
    },
    customer: { $ref: '#/$defs/customer' },
    extra: { type: 'object' },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
  },
  $defs: { customer: { type: 'object', properties: { id: { type: 'string' } }, additionalProperties: false } },
};
const textsOf = (rule: object, schema: object = refund, refusesUndescribed = true) =>
  ruleProblems(rule as never, schema as never, { refusesUndescribed }).map(({ path, message }) => `${path} ${message}`);

describe('a rule is refused', () => {
  const has = '"order", "cents", "currency", "note", "items", "customer", "extra", "labels"';
  test.each<[string, object, string[]]>([
    [
      'about a property that the input does not have',
      { properties: { euros: { minimum: 50 } }, required: ['euros'] },
      [`properties.euros is not in the inputSchema, which has ${has} here`],
    ],
    [
      'about a misspelt property',
      { properties: { centss: { minimum: 50 } } },
      ['properties.centss is not in the inputSchema. Did you mean "cents"?'],
    ],
    [
      'that requires a misspelt property',
      { required: ['order', 'Cents'] },
      ['required[1] "Cents" is not in the inputSchema. Did you mean "cents"?'],
    ],
    [
      'with a misspelt property in a list of alternatives',
      { anyOf: [{ required: ['cents'] }, { required: ['amount'] }] },
      [`anyOf[1].required[0] "amount" is not in the inputSchema, which has ${has} here`],
    ],
    [
      'with a misspelt property of an item',
      { properties: { items: { contains: { properties: { sku: {}, cont: { minimum: 3 } } } } } },
      ['properties.items.contains.properties.cont is not in the inputSchema. Did you mean "count"?'],
    ],
    [
      'with a misspelt property behind a reference',
      { properties: { customer: { required: ['ids'] } } },
      ['properties.customer.required[0] "ids" is not in the inputSchema. Did you mean "id"?'],
    ],
    [
      'with a misspelt property behind a reference of its own',
      { allOf: [{ $ref: '#/$defs/large' }], $defs: { large: { properties: { cent: {} } } } },
      ['allOf[0].$ref.properties.cent is not in the inputSchema. Did you mean "cents"?'],
    ],
    [
      'with misspelt properties that depend on each other',
      { dependentRequired: { cents: ['curency'] }, dependentSchemas: { ordr: {} } },
      [
        'dependentSchemas.ordr is not in the inputSchema. Did you mean "order"?',
        'dependentRequired.cents[0] "curency" is not in the inputSchema. Did you mean "currency"?',
      ],
    ],
    [
      'with misspelt properties in conditions and negations',
      JSON.parse(
        '{"if":{"required":["ordr"]},"then":{"properties":{"cent":{}}},"else":{"not":{"required":["notes"]}}}',
      ),
      [
        'if.required[0] "ordr" is not in the inputSchema. Did you mean "order"?',
        'then.properties.cent is not in the inputSchema. Did you mean "cents"?',
        'else.not.required[0] "notes" is not in the inputSchema. Did you mean "note"?',
      ],
    ],
    [
      'with a pattern that no property matches',
      { patternProperties: { '^cent$': {}, '^c': {} } },
      [`patternProperties.^cent$ matches no property: the inputSchema has ${has} here`],
    ],
    [
      'with a name that no property has',
      { propertyNames: { not: { enum: ['cents', 'euro'] } } },
      [`propertyNames.not.enum[1] can’t match: the inputSchema has ${has} here.`],
    ],
    [
      'about properties that are not described',
      { properties: { extra: { required: ['amount'] } } },
      ['properties.extra.required[0] "amount" is not in the inputSchema, which declares no properties here'],
    ],
    [
      'about another type',
      { properties: { cents: { type: 'string' }, items: { type: ['object', 'number'] } } },
      [
        'properties.cents.type can’t match: the inputSchema says "integer" here',
        'properties.items.type can’t match: the inputSchema says "array" here',
      ],
    ],
    [
      'with keywords that ignore the type',
      { properties: { order: { minimum: 5 }, note: { maxItems: 2 }, cents: { pattern: '^9' } } },
      [
        'properties.order.minimum has no effect: the inputSchema says "string" here',
        'properties.note.maxItems has no effect: the inputSchema says "string" or "null" here',
        'properties.cents.pattern has no effect: the inputSchema says "integer" here',
      ],
    ],
    [
      'about properties of a list',
      { properties: { items: { properties: { sku: {} } } } },
      ['properties.items.properties has no effect: the inputSchema says "array" here'],
    ],
    [
      'with values that the input can’t have',
      { properties: { currency: { enum: ['EUR', 'USS'] }, cents: { const: '5' }, order: { const: 'a'.repeat(11) } } },
      [
        'properties.currency.enum[1] can’t match: the inputSchema has "EUR", "USD" here. Did you mean "USD"?',
        'properties.cents.const can’t match: the inputSchema says "integer" here, within its limits',
        'properties.order.const can’t match: the inputSchema says "string" here, within its limits',
      ],
    ],
    [
      'with a limit beyond that of the input',
      { properties: { cents: { minimum: 5000 }, order: { minLength: 11 } } },
      [
        'properties.cents.minimum can’t match: it is outside of what the inputSchema allows here',
        'properties.order.minLength can’t match: it is outside of what the inputSchema allows here',
      ],
    ],
  ])('%s', (_title, rule, problems) => {
    expect(textsOf(rule)).toEqual(problems);
  });

  test('if its limit is just beyond that of the input, but not if it reaches it', () => {
    const schema = { properties: { n: { exclusiveMaximum: 10 }, m: { anyOf: [{ maximum: 5 }, { maximum: 10 }] } } };
    const ofLimit = (rule: object) => textsOf({ properties: rule }, schema).length;
    expect(ofLimit({ n: { minimum: 10 } })).toBe(1);
    expect(ofLimit({ n: { minimum: 9.9 } })).toBe(0);
    expect(ofLimit({ m: { minimum: 10 } })).toBe(0);
    expect(ofLimit({ m: { exclusiveMinimum: 10 } })).toBe(1);
  });

  test('if the schema declares no properties at all, unless the schema is a server’s', () => {
    const rule = { required: ['cents'] };
    const problem = ['required[0] "cents" is not in the inputSchema, which declares no properties here'];
    expect(textsOf(rule, {})).toEqual(problem);
    expect(textsOf(rule, { type: 'object' }, false)).toEqual([]);
    expect(textsOf(rule, { type: 'object', properties: {} }, false)).toEqual(problem);
    expect(textsOf(rule, { additionalProperties: false }, false)).toEqual(problem);
  });
});

describe('a rule is accepted', () => {
  test.each<[string, object]>([
    [
      'about declared properties',
      { properties: { cents: { minimum: 500 }, currency: { const: 'EUR' } }, required: ['cents'] },
    ],
    ['about the input as a whole', { minProperties: 2, type: 'object' }],
    ['that is empty', { type: 'object', properties: {}, required: [] }],
    [
      'about other properties than the declared ones, if they are allowed',
      { properties: { labels: { required: ['vip'], properties: { vip: { const: 'yes' } } } } },
    ],
    ['about the absence of a property', { properties: { order: false }, not: { required: ['note'] } }],
    ['about one of several types', { properties: { note: { type: 'string', minLength: 3 } } }],
    [
      'about items',
      {
        properties: {
          items: { minItems: 3, contains: { properties: { count: { minimum: 9 } }, required: ['count'] } },
        },
      },
    ],
    ['about any property', { additionalProperties: { type: 'string' }, patternProperties: { '^c': true } }],
  ])('%s', (_title, rule) => {
    expect(textsOf(rule)).toEqual([]);
  });

  test.each<[string, object, object]>([
    [
      'one of several alternatives has',
      { oneOf: [{ properties: { a: { const: 1 } } }, { properties: { b: { type: 'string' } } }] },
      { properties: { a: { const: 'another' }, b: { pattern: '^x' } } },
    ],
    [
      'only alternatives declare, each with its own type',
      {
        anyOf: [
          { properties: { a: { type: 'string' } }, additionalProperties: false },
          { properties: { a: { type: 'number' } } },
        ],
      },
      { properties: { a: { minimum: 1 } } },
    ],
    [
      'a condition adds',
      JSON.parse('{"if":{},"then":{"properties":{"a":{"const":1}}}}'),
      { properties: { a: { const: 2 } } },
    ],
    [
      'a pattern declares',
      { patternProperties: { '^x-': { type: 'number' } } },
      { properties: { 'x-a': { minimum: 1 } } },
    ],
    [
      'a reference by an anchor declares',
      { $ref: '#q', $defs: { a: { $anchor: 'q', properties: { a: {} } } } },
      { required: ['a'] },
    ],
    [
      'a tuple has',
      { properties: { a: { prefixItems: [{ type: 'string' }, { type: 'number' }] } } },
      { properties: { a: { prefixItems: [{ pattern: 'x' }, { minimum: 1 }] } } },
    ],
  ])('about what %s', (_title, schema, rule) => {
    expect(textsOf(rule, schema)).toEqual([]);
  });

  test('even if rule and schema are recursive', () => {
    const tree = {
      $ref: '#/$defs/n',
      $defs: { n: { type: 'object', properties: { next: { $ref: '#/$defs/n' }, size: { type: 'number' } } } },
    };
    const rule = { anyOf: [{ properties: { size: { minimum: 3 } } }, { properties: { next: { $ref: '#' } } }] };
    expect(textsOf(rule, tree)).toEqual([]);
    expect(textsOf({ ...rule, required: ['sise'] }, tree).slice(0, 1)).toEqual([
      'required[0] "sise" is not in the inputSchema. Did you mean "size"?',
    ]);
  });
});

test('schemas that are too large to be compared are not accepted', () => {
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, level) => [
      `d${level}`,
      { allOf: Array(2).fill(level === 39 ? {} : { $ref: `#/$defs/d${level + 1}` }) },
    ]),
  );
  const schema = { $ref: '#/$defs/d0', $defs: doubling };
  expect(() => textsOf({}, schema)).toThrow('too large');
  expect(() => requiredProblems(schema)).toThrow('too large');
});

test('a path leads to what the schema has', () => {
  const wrong = (...paths: string[]) => pathProblems(paths, refund).map(({ path, message }) => `${path} ${message}`);
  expect(wrong('order', 'items.0.sku', 'customer.id', 'extra.any.thing', 'labels.vip', 'note')).toEqual([]);
  expect(wrong('ordr', 'items.0.skus', 'items.sku', 'customer.name', 'order.id')).toEqual([
    'ordr is not in the inputSchema. Did you mean "order"?',
    'items.0.skus is not in the inputSchema. Did you mean "sku"?',
    'items.sku is not in the inputSchema: it says "array"',
    'customer.name is not in the inputSchema, which has "id" here',
    'order.id is not in the inputSchema: it says "string"',
  ]);
  expect(pathProblems(['any.thing'], { type: 'object' })).toEqual([]);
  expect(pathProblems(['any'], { properties: { a: {} }, additionalProperties: true })).toEqual([]);
});
