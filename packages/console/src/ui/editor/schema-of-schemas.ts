// The JSON Schema of JSON Schemas, as far as tools and structured output use it: completes, explains and checks a schema while it is
// written. The service checks the whole dialect when the agent is saved.
import type { JsonSchema } from './schema-at.ts';

const schema = { $ref: '#/$defs/schema' };
const schemas = { type: 'array', items: schema };
const named = { type: 'object', additionalProperties: schema };
const count = { type: 'integer', minimum: 0 };
const types = { type: 'string', enum: ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] };

const about = (description: string, one: object) => ({ description, ...one });

const keywords = {
  type: about('What the value is. A list allows several.', {
    anyOf: [types, { type: 'array', items: types, minItems: 1 }],
  }),
  title: about('A short name.', { type: 'string' }),
  description: about('What the value means. The model reads this.', { type: 'string' }),
  enum: about('The values that are allowed.', { type: 'array' }),
  const: about('The only value that is allowed.', {}),
  default: about('The value if there is none. Only a hint for the model.', {}),
  examples: about('Values that are right. The model reads them.', { type: 'array' }),
  properties: about('The fields of an object, each with its schema.', named),
  required: about('The names of the fields that an object must have.', { type: 'array', items: { type: 'string' } }),
  additionalProperties: about('The schema of fields that are not listed; false refuses them.', schema),
  propertyNames: about('The schema of the names of fields.', schema),
  minProperties: about('The fewest fields.', count),
  maxProperties: about('The most fields.', count),
  patternProperties: about('Schemas of fields by a regular expression of their name.', named),
  items: about('The schema of the elements of a list.', schema),
  prefixItems: about('The schemas of the first elements of a list, in order.', schemas),
  contains: about('A list must have an element that matches this schema.', schema),
  minItems: about('The fewest elements.', count),
  maxItems: about('The most elements.', count),
  uniqueItems: about('Whether no two elements may be equal.', { type: 'boolean' }),
  minLength: about('The fewest characters.', count),
  maxLength: about('The most characters.', count),
  pattern: about('A regular expression that the text must match somewhere.', { type: 'string' }),
  format: about('What kind of text it is.', {
    type: 'string',
    examples: ['date-time', 'date', 'time', 'email', 'uri', 'uuid', 'ipv4'],
  }),
  minimum: about('The smallest number.', { type: 'number' }),
  maximum: about('The largest number.', { type: 'number' }),
  exclusiveMinimum: about('The number must be larger.', { type: 'number' }),
  exclusiveMaximum: about('The number must be smaller.', { type: 'number' }),
  multipleOf: about('The number must be a multiple of this one.', { type: 'number' }),
  anyOf: about('At least one of these schemas must match.', schemas),
  oneOf: about('Exactly one of these schemas must match.', schemas),
  allOf: about('All of these schemas must match.', schemas),
  not: about('This schema must not match.', schema),
  if: about('If this schema matches, `then` must match, else `else`.', schema),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: about('Must match if `if` does.', schema),
  else: about('Must match if `if` does not.', schema),
  $ref: about('Refers to another part of this schema, such as `#/$defs/address`.', { type: 'string' }),
  $defs: about('Schemas that others refer to.', named),
};

const $defs = { schema: { type: ['object', 'boolean'], properties: keywords } };

export const schemaOfSchemas: JsonSchema = { $ref: '#/$defs/schema', $defs };

/** The schema of an output schema, which may be null. */
export const schemaOfOutputs: JsonSchema = { anyOf: [{ $ref: '#/$defs/schema' }, { type: 'null' }], $defs };

/** The schema of an object's schema, such as that of a tool's input. */
export const schemaOfInputs: JsonSchema = {
  type: 'object',
  properties: { ...keywords, type: { description: keywords.type.description, const: 'object' } },
  $defs,
};
