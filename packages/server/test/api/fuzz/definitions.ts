// Agents of which one part grows, with the input that makes them use it. Each has about the given number of bytes.
import type { Tool } from '@signalbox/client';

export interface Definition {
  agent: { model: object | string; tools?: Tool[]; outputSchema?: Record<string, unknown> } & Record<string, unknown>;
  input: string;
}

const scripted = (...script: object[]) => ({ provider: 'scripted', model: 'x', settings: { script } });
const many = <T>(bytes: number, each: number, item: (index: number) => T) =>
  Array.from({ length: Math.max(1, Math.floor(bytes / each)) }, (_, index) => item(index));
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
const anything = { type: 'object' };

function http(request: object, inputSchema: object = anything, more: object = {}): Tool {
  const whole = { method: 'POST', url: 'http://127.0.0.1:9/', ...request };
  return { type: 'http', name: 't', description: '', inputSchema, request: whole, approval: 'never', ...more } as Tool;
}

function client(inputSchema: object, more: object = {}, name = 't'): Tool {
  return { type: 'client', name, description: '', inputSchema, ...more } as Tool;
}

/** One call of the tool with this input. */
const calls = (input: object, count = 1) =>
  scripted({ toolCalls: Array.from({ length: count }, () => ({ name: 't', input })) }, { text: 'done' });
const echoes = calls({ a: '{{input}}' });
const LONG = 'a'.repeat(300_000);
const backtracks = object({ a: { type: 'string', pattern: '^(a+)+$' } });
const VICTIM = { a: `${'a'.repeat(60)}!` };

function doubling(levels: number): Record<string, unknown> {
  const level = (index: number) => ({ $ref: `#/$defs/d${index}` });
  const defs = Array.from({ length: levels }, (_, index) => [
    `d${index}`,
    index === levels - 1 ? {} : { allOf: [level(index + 1), level(index + 1)] },
  ]);
  return { ...level(0), $defs: Object.fromEntries(defs) };
}

export const definitions: Record<string, (bytes: number) => Definition> = {
  'a body of many places': (bytes) => ({
    agent: { model: echoes, tools: [http({ body: many(bytes, 14, () => 'x{{input.a}}') })] },
    input: LONG,
  }),
  'a body of many whole values': (bytes) => ({
    agent: { model: echoes, tools: [http({ body: many(bytes, 14, () => '{{input.a}}') })] },
    input: LONG,
  }),
  'a form of many places': (bytes) => ({
    agent: {
      model: echoes,
      tools: [
        http({
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: 'a={{input.a}}&'.repeat(bytes / 14),
        }),
      ],
    },
    input: LONG,
  }),
  'headers of many places': (bytes) => ({
    agent: { model: echoes, tools: [http({ headers: { 'x-a': '{{input.a}}'.repeat(Math.min(700, bytes / 11)) } })] },
    input: LONG,
  }),
  'a template of broken places': (bytes) => ({
    agent: { model: echoes, tools: [http({ body: many(bytes, 8, () => '{{a') })] },
    input: 'go',
  }),
  'much metadata': (bytes) => ({
    agent: { model: 'scripted/x', metadata: Object.fromEntries(many(bytes, 13, (n) => [`k${n}`, 'v'])) },
    input: 'go',
  }),
  'many tools that are none': (bytes) => ({
    agent: { model: 'scripted/x', tools: many(bytes, 3, () => ({})) as Tool[] },
    input: 'go',
  }),
  'many fields that are not known': (bytes) => ({
    agent: { model: 'scripted/x', ...Object.fromEntries(many(bytes, 13, (n) => [`k${n}`, 'v'])) },
    input: 'go',
  }),
  'a long message of short words': (bytes) => ({ agent: { model: 'scripted/echo' }, input: 'a '.repeat(bytes / 2) }),
  'a message of many lines': (bytes) => ({ agent: { model: 'scripted/echo' }, input: '\n'.repeat(bytes) }),
  'a script that repeats its message': (bytes) => ({
    agent: { model: scripted({ text: '{{input}} '.repeat(20) }) },
    input: 'a-longer-word '.repeat(bytes / 14),
  }),
  'a script of many inputs': (bytes) => ({
    agent: { model: calls({ list: many(bytes, 12, () => '{{input}}') }), tools: [client(anything)] },
    input: LONG,
  }),
  'a long pattern': (bytes) => ({
    agent: { model: echoes, tools: [client(object({ a: { pattern: `${'\\p{L}?'.repeat(bytes / 7)}$` } }))] },
    input: 'a',
  }),
  'many patterns': (bytes) => ({
    agent: {
      model: echoes,
      tools: [
        client({ ...anything, patternProperties: Object.fromEntries(many(bytes, 20, (n) => [`^(a+)+${n}$`, {}])) }),
      ],
    },
    input: 'a',
  }),
  'many properties': (bytes) => ({
    agent: {
      model: calls(Object.fromEntries(many(bytes, 40, (n) => [`x${n}`, n]))),
      tools: [
        client(object(Object.fromEntries(many(bytes, 40, (n) => [`k${n}`, {}])), { additionalProperties: false })),
      ],
    },
    input: 'go',
  }),
  'a large enum for each item': (bytes) => ({
    agent: {
      model: calls({ a: many(Math.min(bytes / 2, 30_000), 6, () => -1) }),
      // More are refused.
      tools: [
        client(object({ a: { items: { enum: many(Math.min(bytes / 2, 100_000), 6, (n) => n - 1).reverse() } } })),
      ],
    },
    input: 'go',
  }),
  'items that are to be unique': (bytes) => ({
    agent: {
      model: calls({ a: many(bytes, 4, () => 1) }),
      tools: [client(object({ a: { uniqueItems: true } }))],
    },
    input: 'go',
  }),
  'references that double': (bytes) => ({
    agent: { model: echoes, tools: [client({ ...anything, ...doubling(Math.min(500, bytes / 100)) })] },
    input: 'go',
  }),
  'rules that double, one for each tool of a server': (bytes) => ({
    agent: {
      model: 'scripted/x',
      tools: [
        {
          type: 'mcp',
          name: 'm',
          url: 'http://127.0.0.1:9/',
          approval: Object.fromEntries(
            many(Math.min(bytes, 200 * 3_000), 3_000, (n) => [`t${n}`, { when: doubling(40) }]),
          ),
        } as Tool,
      ],
    },
    input: 'go',
  }),
  'many calls against a pattern that backtracks': () => ({
    agent: { model: calls(VICTIM, 20), tools: [client(backtracks)] },
    input: 'go',
  }),
  'many calls against a rule that backtracks': () => ({
    agent: { model: calls(VICTIM, 20), tools: [client(anything, { approval: { when: backtracks } })] },
    input: 'go',
  }),
  'an answer that backtracks': () => ({
    agent: { model: scripted({ text: JSON.stringify(VICTIM) }), outputSchema: backtracks },
    input: 'go',
  }),
  'a long answer of many items': (bytes) => ({
    agent: {
      model: scripted({ text: '{"a":[{{input}}]}' }),
      outputSchema: object({ a: { items: { anyOf: [{ type: 'string' }, { const: 2 }, { minimum: 1 }] } } }),
    },
    input: many(bytes, 2, () => 1).join(','),
  }),
  'many schemas': (bytes) => ({
    agent: {
      model: 'scripted/x',
      tools: many(Math.min(100, bytes / 300), 1, (n) =>
        client(object(Object.fromEntries(many(bytes / 100, 60, (k) => [`k${k}`, { pattern: '^a+$' }]))), {}, `t${n}`),
      ),
    },
    input: 'go',
  }),
};

/** A complete list of tools of an MCP server, of about this many bytes. */
export const toolLists: Record<string, (bytes: number) => unknown[]> = {
  'many tools': (bytes) => many(bytes, 50, (n) => ({ name: `t${n}`, inputSchema: anything })),
  'long names': (bytes) => many(bytes, 10_000, (n) => ({ name: `${n}${'a'.repeat(10_000)}`, inputSchema: anything })),
  'long descriptions': (bytes) =>
    many(bytes, 20_000, (n) => ({ name: `t${n}`, description: 'a {{ '.repeat(4_000), inputSchema: anything })),
  'many properties': (bytes) => [
    { name: 't', inputSchema: object(Object.fromEntries(many(bytes, 24, (n) => [`k${n}`, { type: 'string' }]))) },
  ],
  'patterns that backtrack': (bytes) =>
    many(bytes, 100, (n) => ({ name: `t${n}`, inputSchema: object({ a: { type: 'string', pattern: '^(a+)+$' } }) })),
  'references that double': (bytes) =>
    many(bytes, 8_000, (n) => ({ name: `t${n}`, inputSchema: { ...anything, ...doubling(80) } })),
  'schemas that are none': (bytes) => many(bytes, 40, (n) => ({ name: `t${n}`, inputSchema: { type: n } })),
  'deep schemas': (bytes) =>
    many(bytes, 1_200, (n) => ({
      name: `t${n}`,
      inputSchema: Array.from({ length: 50 }).reduce<object>((inner) => object({ a: inner }), anything),
    })),
  'no tools at all': (bytes) => many(bytes, 2, () => 0),
};
