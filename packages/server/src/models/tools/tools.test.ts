import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anySchema } from '../../../test/support/schemas.ts';
import { toolsRefusal } from '../../../test/support/server-rules/tools.ts';
import type { Target } from '../model/targets.ts';
import { nameFor } from './names.ts';
import { type OfferedTool, type SentTools, sentTools, toolNamed } from './tools.ts';

const targets: readonly Target[] = [
  'openai',
  'anthropic',
  'google',
  'chat',
  'openai-chat',
  'azure',
  'bedrock',
  'google-chat',
  'openrouter',
  'deepseek',
  'moonshot',
  'mistral',
  'groq',
  'xai',
];

/** The tools of a request, in the format of the server. */
function bodyFor(target: Target, { definitions }: SentTools): unknown {
  const tools = definitions.map(({ name, description, inputSchema }) => {
    if (target === 'openai') return { type: 'function', name, description, parameters: inputSchema };
    if (target === 'anthropic') return { name, description, input_schema: inputSchema };
    if (target === 'google') return { name, description, parametersJsonSchema: inputSchema };
    return { type: 'function', function: { name, description, parameters: inputSchema } };
  });
  return JSON.parse(JSON.stringify({ tools: target === 'google' ? [{ functionDeclarations: tools }] : tools }));
}

const tool = (inputSchema: Record<string, unknown>, more: Partial<OfferedTool> = {}): OfferedTool => ({
  name: 'find',
  description: 'Finds.',
  inputSchema,
  ...more,
});

describe.each(targets)('%s', (target) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true, logger: false });

  test('accepts the definition of every schema, and a call that follows it is one of the schema', () => {
    fc.assert(
      fc.property(anySchema, ({ schema, value }) => {
        const sent = sentTools(target, [tool(schema)]);
        expect(sent.leftOut).toEqual([]);
        expect(toolsRefusal(target, bodyFor(target, sent))).toBeUndefined();
        const call = sent.sentCall('find', value);
        const { inputSchema } = sent.definitions[0]!;
        if (!ajv.validate(inputSchema as object, call.input))
          throw new Error(`${ajv.errorsText()}: ${JSON.stringify(inputSchema)}`);
        expect(sent.ownCall(call.name, call.input)).toEqual({ name: 'find', input: value });
      }),
      { numRuns: 40 },
    );
  });
});

test('a definition that the server takes is sent as it is, and prepared once', () => {
  const inputSchema = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] };
  const tools = [tool(inputSchema)];
  for (const target of targets) {
    const sent = sentTools(target, tools);
    expect(sent.definitions[0]!.inputSchema).toBe(inputSchema);
    expect(sentTools(target, tools)).toBe(sent);
  }
});

const either = { anyOf: [{ required: ['id'] }, { required: ['name', '$top'] }], properties: { $top: {} } };

test.each<[string, Record<string, unknown>, Target, object]>([
  [
    'alternatives of the root',
    { type: 'object', ...either },
    'openai',
    {
      inputSchema: { type: 'object', properties: { $top: {}, id: {}, name: {} } },
      description: 'Finds.\n\nThe input has one of these forms: "id"; "$top", "name".',
    },
  ],
  [
    'names of properties',
    { type: 'object', ...either },
    'anthropic',
    {
      inputSchema: { type: 'object', properties: { top: { description: 'Named "$top".' }, id: {}, name: {} } },
      description: expect.stringContaining('"top", "name"'),
    },
  ],
  [
    'alternatives with a kind',
    {
      oneOf: ['a', 'b'].map((kind) => ({
        properties: { kind: { const: kind }, [kind]: { type: 'string' } },
        required: ['kind', kind],
      })),
    },
    'anthropic',
    {
      inputSchema: {
        type: 'object',
        properties: { kind: { enum: ['a', 'b'] }, a: { type: 'string' }, b: { type: 'string' } },
        required: ['kind'],
      },
      description: expect.stringContaining('"kind" = "a", "a"; "kind" = "b", "b"'),
    },
  ],
  [
    'parts of draft-04',
    {
      definitions: { n: { minimum: 0, exclusiveMinimum: true } },
      properties: { n: { $ref: '#/definitions/n' }, p: { type: 'array', items: [{ type: 'string' }] } },
    },
    'mistral',
    {
      inputSchema: {
        type: 'object',
        properties: { n: { type: 'number', exclusiveMinimum: 0 }, p: { type: 'array', items: { type: 'string' } } },
      },
    },
  ],
  [
    'combinations in the root',
    {
      properties: { a: { type: 'string' } },
      patternProperties: { '^x-': { type: 'string' } },
      additionalProperties: false,
      dependentRequired: { a: ['b'] },
      unevaluatedProperties: false,
      required: ['b'],
    },
    'chat',
    {
      inputSchema: {
        type: 'object',
        properties: { a: { type: 'string' }, b: expect.anything() },
        required: ['b'],
      },
    },
  ],
  [
    'a part that contains itself',
    {
      properties: { n: { $ref: '#/$defs/n' } },
      $defs: { n: { type: 'object', properties: { n: { $ref: '#/$defs/n' } } } },
    },
    'moonshot',
    {
      inputSchema: {
        type: 'object',
        properties: {
          n: { type: 'object', properties: { n: { type: 'object', properties: { n: { type: 'object' } } } } },
        },
      },
    },
  ],
  [
    'values that are not texts, and null',
    { properties: { size: { enum: [1, 2, null], description: 'The size.' } } },
    'google-chat',
    {
      inputSchema: {
        type: 'object',
        properties: { size: { type: 'integer', nullable: true, description: 'The size. One of 1, 2.' } },
      },
    },
  ],
])('%s are written in the words of the server', (_title, schema, target, definition) => {
  const [sent] = sentTools(target, [tool(schema)]).definitions;
  expect(sent).toEqual({ type: 'function', name: 'find', description: 'Finds.', ...definition });
});

test('names stand for others only where the schema has them, and in both directions', () => {
  const $top = { type: 'integer' };
  const schema = {
    properties: { $top, top: $top, by: { additionalProperties: { properties: { 'filter[id]': {} } } }, any: {} },
  };
  const sent = sentTools('anthropic', [tool(schema)]);
  const names = Object.keys((sent.definitions[0]!.inputSchema as { properties: object }).properties);
  expect(names).toEqual([expect.stringMatching(/^_?top_[0-9a-f]{8}$/), 'top', 'by', 'any']);
  const input = { $top: 1, top: 2, by: { 'filter[id]': { 'filter[id]': 3 } }, any: { filter_id: 4, $top: 5 } };
  const { input: asSent } = sent.sentCall('find', input);
  expect(asSent).toEqual({ [names[0]!]: 1, top: 2, by: { 'filter[id]': { filter_id: 3 } }, any: input.any });
  expect(sent.ownCall('find', asSent).input).toEqual(input);
});

test('descriptions are cut, and there is always one', () => {
  const long = 'x'.repeat(4000);
  const descriptionOf = (target: Target, description: string, schema: object = {}) =>
    sentTools(target, [tool(schema as Record<string, unknown>, { description })]).definitions[0]!.description;
  expect(descriptionOf('azure', long)).toBe(`${'x'.repeat(1023)}…`);
  expect(descriptionOf('anthropic', long)).toBe(long);
  expect(descriptionOf('chat', long, either)).toHaveLength(1024);
  expect(descriptionOf('chat', ' ')).toBe('The tool find.');
});

test('tools that can not be written for a server are left out with the reason, always the same ones', () => {
  const many = Array.from({ length: 250 }, (_, index) => tool({ type: 'object' }, { name: `t${index}` }));
  for (const [target, most] of [
    ['openai', 128],
    ['chat', 128],
    ['xai', 200],
    ['anthropic', 250],
  ] as const) {
    const { names, leftOut } = sentTools(target, many);
    expect(names).toEqual(many.slice(0, most).map(({ name }) => name));
    expect(leftOut).toEqual(
      many.slice(most).map(({ name }) => ({ name, reason: `the model’s server takes ${most} tools` })),
    );
  }
  const odd = [tool({ anyOf: [{ type: 'string' }] }), tool({}, { name: 'find' }), tool({}, { name: 'find' })];
  expect(sentTools('openai', odd).leftOut).toEqual([
    { name: 'find', reason: 'its schema allows no object' },
    { name: 'find', reason: 'another tool has the same name' },
  ]);
});

test('a name that the server refuses becomes one that it takes, which follows from the name alone', () => {
  for (const target of targets) {
    const names = ['look', 'look.up', 'look<|channel|>commentary', '', '9', 'x'.repeat(200), 'ナイス', 'look_up'];
    const sent = names.map((name) => nameFor(target, name));
    for (const name of sent) expect(name).toMatch(target === 'google' ? /^[A-Za-z_][\w-]{0,63}$/ : /^[\w-]{1,64}$/);
    expect(new Set(sent).size).toBe(names.length);
    expect(sent.map((name) => nameFor(target, name))).toEqual(sent);
    expect([sent[0], sent.at(-1)]).toEqual(['look', 'look_up']);
  }
  // The SDK has a tool of this name for the responses of models without structured outputs.
  const json = sentTools('anthropic', [tool({}, { name: 'json' })]);
  expect(json.definitions[0]!.name).not.toBe('json');
  expect(json.ownCall(json.definitions[0]!.name, {})).toEqual({ name: 'json', input: {} });
});

test('the field of a refused request names the tool', () => {
  const names = ['a', 'b', 'c'];
  for (const field of [
    'tools[2].function.parameters',
    'tools.2.custom.input_schema',
    'body.tools[2]',
    'tools[0].function_declarations[2].name',
  ])
    expect(toolNamed(field, { names })).toBe('c');
  for (const field of ['tools', 'tools[3].function', 'messages.2.content', 'mytools[2]'])
    expect(toolNamed(field, { names })).toBeUndefined();
});
