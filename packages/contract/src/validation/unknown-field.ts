// The error for a field that a schema does not have, with the one that was probably meant.
import type { SchemaObject } from '../components.ts';
import { didYouMean } from './nearest.ts';

/** What other services, and other operations of this one, call a field. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  input: ['content', 'message', 'messages', 'prompt', 'text', 'query'],
  content: ['input', 'message', 'messages', 'prompt', 'text', 'query'],
  decision: ['approved', 'approve', 'denied', 'deny', 'status'],
  instructions: ['system', 'systemPrompt', 'system_prompt', 'prompt'],
  inputSchema: ['parameters', 'input_schema', 'schema', 'args'],
  outputSchema: ['responseFormat', 'response_format', 'schema', 'output_type'],
  request: ['url', 'method', 'headers', 'body'],
  people: ['persons', 'users', 'members'],
  permission: ['role'],
  chunkTypes: ['types', 'events', 'eventTypes'],
  cron: ['schedule'],
  output: ['result', 'content'],
  limitUsd: ['budget', 'amount', 'limit'],
};

// A longer list is easier to find in the reference than to read in an error.
const MAX_NAMES_LISTED = 16;

/** With the field that was probably meant, or all fields that there are. */
export function unknownField(name: string, { properties = {} }: SchemaObject): string {
  const known = Object.keys(properties);
  const meant = known.find((one) => OTHER_NAMES[one]?.includes(name));
  const hint = meant === undefined ? didYouMean(name, known) : ` Did you mean "${meant}"?`;
  if (hint !== '') return `is not a known field.${hint}`;
  if (known.length === 0 || known.length > MAX_NAMES_LISTED) return 'is not a known field';
  return `is not a known field; there ${known.length === 1 ? 'is only' : 'are'} ${known.join(', ')}`;
}
