// What the servers of models refuse in the definitions of tools, and how they say it: the rules that their makers document, or that their
// errors name.
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Target } from '../../../src/models/model/targets.ts';

/** A response of a server that refuses a request. */
interface Refusal {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
}

/** Undefined: the server accepts the tools of the request. */
export function toolsRefusal(target: Target, body: unknown): Refusal | undefined {
  const { toolConfig, tools = toolConfig?.tools ?? [] } = body as Partial<Record<'tools', unknown[]>> & {
    toolConfig?: { tools?: unknown[] };
  };
  const definitions = tools.flatMap((tool) => definitionsIn(tool as Fields));
  const { rules, refusal } = servers[target];
  for (const rule of rules) {
    const problem = rule(definitions);
    if (problem) return refusal(problem);
  }
  return undefined;
}

type Fields = Record<string, unknown>;
interface Definition {
  name: unknown;
  description: unknown;
  /** Undefined: the request has none. */
  schema: Fields | undefined;
}
interface Problem {
  /** Undefined: all together. */
  index?: number;
  field: 'name' | 'description' | 'schema' | 'tools';
  message: string;
}
type Rule = (tools: readonly Definition[]) => Problem | undefined;

/** In any of the five formats. */
function definitionsIn(tool: Fields): Definition[] {
  const of = (fields: Fields, schema: string) => ({
    name: fields.name,
    description: fields.description,
    schema: fields[schema] as Fields | undefined,
  });
  if (Array.isArray(tool.functionDeclarations))
    return tool.functionDeclarations.map((one: Fields) => of(one, 'parametersJsonSchema'));
  if (tool.toolSpec) {
    const { inputSchema, ...spec } = tool.toolSpec as Fields;
    return [of({ ...spec, ...(inputSchema as Fields) }, 'json')];
  }
  if (tool.function) return [of(tool.function as Fields, 'parameters')];
  return [of(tool, 'input_schema' in tool ? 'input_schema' : 'parameters')];
}

const each =
  (field: Problem['field'], problemOf: (tool: Definition) => string | undefined | false): Rule =>
  (tools) => {
    for (const [index, tool] of tools.entries()) {
      const message = problemOf(tool);
      if (message) return { index, field, message };
    }
    return undefined;
  };

const atMost =
  (max: number): Rule =>
  (tools) =>
    tools.length > max
      ? {
          field: 'tools',
          message: `array too long. Expected an array with maximum length ${max}, but got an array with length ${tools.length} instead.`,
        }
      : undefined;
const unique: Rule = (tools) =>
  new Set(tools.map(({ name }) => name)).size < tools.length
    ? { field: 'tools', message: 'Tool names must be unique.' }
    : undefined;
const named = (pattern: RegExp) =>
  each('name', ({ name }) => !pattern.test(String(name)) && `string does not match pattern ${pattern.source}`);
const describedIn = (max: number) =>
  each('description', ({ description }) => {
    const { length } = [...String(description)];
    return (
      length > max &&
      `string too long. Expected a string with maximum length ${max}, but got a string with length ${length} instead.`
    );
  });
const hasDescription = each(
  'description',
  ({ description }) => (typeof description !== 'string' || description.trim() === '') && 'must not be empty',
);
const schemaIs = (problemOf: (schema: Fields) => string | undefined | false) =>
  each('schema', ({ schema }) => schema !== undefined && problemOf(schema));

const ofObject = schemaIs(
  ({ type }) => type !== 'object' && `schema must be a JSON Schema of 'type: "object"', got ${type}`,
);
const hasProperties = each(
  'schema',
  ({ schema }) => typeof schema?.properties !== 'object' && `"properties" is required`,
);
const withoutAtRoot = (...keywords: string[]) =>
  schemaIs((schema) => {
    const found = keywords.find((keyword) => keyword in schema);
    return found && `input_schema does not support ${found} at the top level`;
  });

/** Each part of a schema, with its path. */
function* partsOf(part: unknown, path = ''): Generator<{ part: unknown; path: string }> {
  yield { part, path };
  if (typeof part !== 'object' || part === null) return;
  for (const [keyword, value] of Object.entries(part)) {
    if (['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].includes(keyword))
      for (const [name, one] of Object.entries(value as object)) yield* partsOf(one, `${path}.${keyword}.${name}`);
    else if (SCHEMAS.includes(keyword)) for (const one of [value].flat()) yield* partsOf(one, `${path}.${keyword}`);
  }
}
const SCHEMAS =
  'items prefixItems additionalItems additionalProperties allOf anyOf oneOf not if then else contains unevaluatedItems unevaluatedProperties propertyNames'.split(
    ' ',
  );

const everyPart = (problemOf: (part: Fields, at: { isRoot: boolean }) => string | undefined | false) =>
  schemaIs((schema) => {
    for (const { part, path } of partsOf(schema)) {
      const problem = typeof part === 'object' && problemOf(part as Fields, { isRoot: path === '' });
      if (problem) return `${problem} (at ${path || 'root'})`;
    }
    return undefined;
  });

const typesIn = ({ type }: Fields) => [type].flat() as string[];
const arraysHaveItems = everyPart(
  (part) => typesIn(part).includes('array') && !('items' in part) && `In context=(), array schema missing items`,
);
const itemsAreOne = everyPart(({ items }) => Array.isArray(items) && 'items must be an object');
const propertiesMatch = (pattern: RegExp) =>
  everyPart(({ properties = {} }) => {
    const odd = Object.keys(properties as object).find((name) => !pattern.test(name));
    return odd !== undefined && `Property keys should match pattern '${pattern.source}': ${odd}`;
  });
const requiredAreDeclared = everyPart(({ required = [], properties = {} }) => {
  const missing = (required as string[]).find((name) => !Object.hasOwn(properties as object, name));
  return missing !== undefined && `required: property is not defined: ${missing}`;
});
const only = (...keywords: string[]) =>
  everyPart((part) => {
    const odd = Object.keys(part).find((keyword) => !keywords.includes(keyword));
    return odd && `Unknown name "${odd}": Cannot find field.`;
  });
const without = (...keywords: string[]) =>
  everyPart((part) => {
    const odd = Object.keys(part).find((keyword) => keywords.includes(keyword));
    return odd && `keyword ${odd} is not supported`;
  });
const propertiesAreObjects = everyPart(({ properties = {} }) => {
  const odd = Object.entries(properties as object).find(([, part]) => typeof part !== 'object');
  return odd && `property schema for '${odd[0]}' must be an object`;
});
const refersToDefinitions = schemaIs((schema) => {
  for (const { part } of partsOf(schema)) {
    const reference = typeof part === 'object' ? (part as Fields).$ref : undefined;
    if (reference === undefined || reference === '#') continue;
    const [, name = ''] = /^#\/\$defs\/(.+)$/.exec(String(reference)) ?? [];
    if (!Object.hasOwn((schema.$defs as object | undefined) ?? {}, name))
      return `reference can't be resolved: ${reference}`;
  }
  return undefined;
});
const alternativesAreAlone = everyPart(
  (part) =>
    'anyOf' in part &&
    'type' in part &&
    'when using anyOf, type should be defined in anyOf items instead of the parent schema',
);
const everyPartHasType = everyPart((part) => !('anyOf' in part) && !('type' in part) && 'type is not defined');
const valuesHaveTheType = everyPart(({ enum: values, type }) => {
  const typeOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
  if (type === undefined) return false;
  const types = typesIn({ type }).map((one) => (one === 'integer' ? 'number' : one));
  return (
    Array.isArray(values) && values.some((value) => !types.includes(typeOf(value))) && 'enum value has another type'
  );
});

const isOpenApi = everyPart(({ type, anyOf, enum: values, format, nullable }) => {
  if (anyOf !== undefined) return type !== undefined && 'any_of must be the only field set';
  if (!['string', 'number', 'integer', 'boolean', 'array', 'object'].includes(String(type)))
    return 'Proto field is not repeating, cannot start list.';
  if (nullable !== undefined && typeof nullable !== 'boolean') return 'nullable must be a boolean';
  if (Array.isArray(values) && (type !== 'string' || values.some((value) => typeof value !== 'string' || value === '')))
    return 'enum: only allowed for STRING type, and cannot be empty';
  const formats: Record<string, string[]> = {
    string: ['enum', 'date-time'],
    integer: ['int32', 'int64'],
    number: ['float', 'double'],
  };
  return (
    format !== undefined && !formats[String(type)]?.includes(String(format)) && `format ${format} is not supported`
  );
});

/** Keywords and formats that a validator does not know are no error. */
const options = { strict: false, validateFormats: false, logger: false as const };
const draft7 = new Ajv(options);
const draft2020 = new Ajv2020(options);
const isValid = (ajv: Ajv | Ajv2020) =>
  schemaIs((schema) => !ajv.validateSchema(schema) && `Invalid tool schema: ${ajv.errorsText(ajv.errors)}`);

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const NAME_WITH_LETTER = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const PROPERTY = /^[a-zA-Z0-9_.-]{1,64}$/;
const PROPERTY_WITH_LETTER = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const openai: Rule[] = [
  atMost(128),
  named(NAME),
  unique,
  describedIn(1024),
  ofObject,
  withoutAtRoot('oneOf', 'anyOf', 'allOf', 'enum', 'not', '$ref'),
  isValid(draft2020),
  itemsAreOne,
  arraysHaveItems,
  refersToDefinitions,
];
const anthropic: Rule[] = [
  named(NAME),
  unique,
  ofObject,
  withoutAtRoot('oneOf', 'allOf', 'anyOf'),
  isValid(draft2020),
  propertiesMatch(PROPERTY),
  refersToDefinitions,
];
const google: Rule[] = [
  named(NAME_WITH_LETTER),
  unique,
  ofObject,
  withoutAtRoot('oneOf', 'allOf', 'anyOf', '$ref', 'enum', 'not'),
  isValid(draft2020),
  arraysHaveItems,
  requiredAreDeclared,
  propertiesMatch(PROPERTY_WITH_LETTER),
  without('$ref', 'definitions', '$schema', 'const', 'allOf', 'not', 'if'),
];
const moonshot: Rule[] = [
  atMost(128),
  named(NAME_WITH_LETTER),
  unique,
  ofObject,
  withoutAtRoot('anyOf', 'oneOf', 'allOf'),
  propertiesAreObjects,
  itemsAreOne,
  everyPart(({ items }) => typeof items === 'boolean' && 'items must be an object'),
  alternativesAreAlone,
  valuesHaveTheType,
  requiredAreDeclared,
  without('$ref', 'allOf', 'oneOf', 'not', 'if', 'patternProperties', '$schema', 'definitions'),
];
const mistral: Rule[] = [named(NAME), unique, ofObject, isValid(draft7)];
const openApi =
  `type format title description nullable enum items minItems maxItems properties required minProperties maxProperties
  minLength maxLength pattern anyOf propertyOrdering default minimum maximum`.split(/\s+/);

const openAiError =
  (path: (index: number) => string) =>
  (problem: Problem): Refusal => {
    const codes = {
      tools: 'array_above_max_length',
      name: 'invalid_value',
      description: 'string_above_max_length',
      schema: 'invalid_function_parameters',
    };
    const fields = { tools: '', name: '.name', description: '.description', schema: '.parameters' };
    const param = problem.index === undefined ? 'tools' : `${path(problem.index)}${fields[problem.field]}`;
    const error = { message: `Invalid '${param}': ${problem.message}`, type: 'invalid_request_error', param };
    return { status: 400, body: { error: { ...error, code: codes[problem.field] } } };
  };
const chatError = openAiError((index) => `tools[${index}].function`);
const anthropicError = ({ index, field, message }: Problem): Refusal => {
  const fields = {
    tools: '',
    name: '.custom.name',
    description: '.custom.description',
    schema: '.custom.input_schema',
  };
  const path = index === undefined ? 'tools' : `tools.${index}${fields[field]}`;
  const error = { type: 'invalid_request_error', message: `${path}: ${message}` };
  return { status: 400, body: { type: 'error', error, request_id: 'req_1' } };
};
const googleError = ({ index, message }: Problem): Refusal => {
  const text = `* GenerateContentRequest.tools[0].function_declarations[${index ?? 0}].parameters: ${message}`;
  return { status: 400, body: { error: { code: 400, message: text, status: 'INVALID_ARGUMENT', details: [] } } };
};
const mistralError = ({ message }: Problem): Refusal => ({
  status: 400,
  body: { object: 'error', message, type: 'invalid_request_error', param: null, code: null },
});
const moonshotError = ({ message }: Problem): Refusal => ({
  status: 400,
  body: {
    error: {
      message: `tools.function.parameters is not a valid moonshot flavored json schema, details: <${message}>`,
      type: 'invalid_request_error',
    },
  },
});
const groqError = ({ message }: Problem): Refusal => ({
  status: 400,
  body: { error: { message: `invalid JSON schema for tool: ${message}`, type: 'invalid_request_error' } },
});
const xaiError = ({ message }: Problem): Refusal => ({
  status: 400,
  body: { code: 'Client specified an invalid argument', error: message },
});

const bedrockError = ({ index = 0, message }: Problem): Refusal => ({
  status: 400,
  headers: { 'x-amzn-errortype': 'ValidationException:http://internal.amazon.com/coral/com.amazon.bedrock/' },
  body: { message: `The value at toolConfig.tools.${index}.toolSpec.inputSchema.json is invalid: ${message}` },
});

const servers: Record<Target, { rules: readonly Rule[]; refusal(problem: Problem): Refusal }> = {
  openai: { rules: openai, refusal: openAiError((index) => `tools[${index}]`) },
  'openai-chat': { rules: openai, refusal: chatError },
  azure: { rules: openai, refusal: chatError },
  anthropic: { rules: anthropic, refusal: anthropicError },
  google: { rules: google, refusal: googleError },
  // Models of many makers.
  bedrock: {
    rules: [
      named(NAME),
      unique,
      ofObject,
      isValid(draft2020),
      propertiesMatch(PROPERTY),
      everyPartHasType,
      hasDescription,
    ],
    refusal: bedrockError,
  },
  'google-chat': {
    rules: [
      atMost(128),
      named(NAME_WITH_LETTER),
      unique,
      ofObject,
      only(...openApi),
      isOpenApi,
      arraysHaveItems,
      requiredAreDeclared,
      propertiesMatch(PROPERTY_WITH_LETTER),
    ],
    refusal: (problem) => {
      const { status, body } = googleError(problem);
      return { status, body: [body] };
    },
  },
  moonshot: { rules: [...moonshot, everyPartHasType], refusal: moonshotError },
  mistral: { rules: mistral, refusal: mistralError },
  deepseek: { rules: [atMost(128), named(NAME), unique, ofObject, isValid(draft7)], refusal: chatError },
  groq: { rules: [atMost(128), named(NAME), unique, ofObject, isValid(draft7)], refusal: groqError },
  xai: { rules: [atMost(200), named(NAME), unique, ofObject, arraysHaveItems], refusal: xaiError },
  // Whatever runs there, or behind it.
  openrouter: {
    rules: [...openai, ...anthropic, ...google, ...moonshot, everyPartHasType, ...mistral, hasDescription],
    refusal: chatError,
  },
  chat: {
    rules: [...openai, ...anthropic, ...moonshot, everyPartHasType, ...mistral, hasProperties, hasDescription],
    refusal: chatError,
  },
};
