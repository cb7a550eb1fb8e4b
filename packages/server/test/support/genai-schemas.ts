// What OpenTelemetry's conventions for generative AI demand of messages and tool calls in spans. Their JSON schemas end each list of parts
// with one that takes anything with a type; here, a part of a known type must have the form of that type.
import { Ajv2020 } from 'ajv/dist/2020.js';

const text = { type: 'string' };
const object = (properties: Record<string, object>, ...optional: string[]) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});
const partOf = (type: string, properties: Record<string, object>, ...optional: string[]) =>
  object({ type: { const: type }, ...properties }, ...optional);

const textPart = partOf('text', { content: text });
const part = {
  oneOf: [
    textPart,
    partOf('reasoning', { content: text }),
    partOf('tool_call', { id: text, name: text, arguments: {} }, 'id', 'arguments'),
    partOf('tool_call_response', { id: text, response: {} }, 'id'),
    partOf('server_tool_call', { id: text, name: text, server_tool_call: object({ type: text }) }, 'id'),
    partOf('server_tool_call_response', { id: text, server_tool_call_response: object({ type: text }) }, 'id'),
    partOf('file', { modality: { enum: ['image', 'video', 'audio', 'document'] }, mime_type: text, file_id: text }),
  ],
};
const message = {
  role: { enum: ['system', 'user', 'assistant', 'tool'] },
  parts: { type: 'array', items: part, minItems: 1 },
};
const schemas: Record<string, object> = {
  'gen_ai.system_instructions': { type: 'array', items: textPart },
  'gen_ai.input.messages': { type: 'array', items: object(message) },
  'gen_ai.output.messages': {
    type: 'array',
    items: object({ ...message, finish_reason: { enum: ['stop', 'length', 'content_filter', 'tool_call', 'error'] } }),
  },
  'gen_ai.tool.definitions': { type: 'array', items: object({ type: { const: 'function' }, name: text }) },
  'gen_ai.tool.call.arguments': { type: 'object' },
  'gen_ai.tool.call.result': { type: 'object' },
};

const ajv = new Ajv2020({ strict: true, strictRequired: false });
const checks = Object.entries(schemas).map(([name, schema]) => [name, ajv.compile(schema)] as const);

/** The attributes with content, parsed. Throws if one is not as the conventions demand. */
export function contentOf(attributes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const present = checks.filter(([name]) => attributes[name] !== undefined);
  return Object.fromEntries(
    present.map(([name, check]) => {
      const value = JSON.parse(String(attributes[name])) as unknown;
      if (!check(value)) throw new Error(`${name} ${ajv.errorsText(check.errors)}`);
      return [name, value];
    }),
  );
}
