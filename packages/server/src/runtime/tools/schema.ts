// Whether a JSON Schema that somebody wrote can be evaluated at all.
import Schema from 'typebox/schema';
import { bounded } from '../../lib/bounded.ts';

/** What is wrong with a schema that is to be of a tool's input; undefined where nothing is. */
export function checkInputSchema(schema: Record<string, unknown>): string | undefined {
  if (schema.type !== undefined && schema.type !== 'object')
    return 'must be the schema of an object ("type": "object")';
  return checkSchema(schema);
}

/** The same for a schema of any value. */
export function checkSchema(schema: Record<string, unknown>): string | undefined {
  try {
    for (const pattern of patternsOf(schema)) new RegExp(pattern, 'u');
    // Finds what cannot be evaluated at all, such as references to nowhere, to themselves or doubling at every level.
    bounded(() => Schema.Check(schema, {}));
  } catch {
    return 'cannot be evaluated as a JSON Schema';
  }
  return undefined;
}

/** Every regular expression in a schema; what stands in data (`const`, `enum` …) is none. */
function* patternsOf(schema: unknown): Generator<string> {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (['const', 'enum', 'default', 'examples'].includes(keyword)) continue;
    if (keyword === 'pattern' && typeof value === 'string') yield value;
    else if (keyword === 'patternProperties' && typeof value === 'object') yield* Object.keys(value ?? {});
    yield* patternsOf(value);
  }
}
