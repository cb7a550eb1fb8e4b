// What can be asked about schemas, without a time limit: threads.ts stops it, and schemas.ts decides what needs no thread.
import Schema from 'typebox/schema';
import { checkSchema, type Strictness } from './check.ts';
import { pathProblems, ruleProblems } from './fit.ts';
import type { SchemaObject } from './keywords.ts';
import type { Problem } from './problem.ts';

/** Schemas and values are JSON texts, as they are passed to a thread. */
export type Task =
  /** Whether a schema can be used. */
  | { readonly ask: 'schema'; readonly schema: string; readonly strictness: Strictness }
  /** Whether a value matches a schema. */
  | { readonly ask: 'value'; readonly schema: string; readonly value: string }
  /** Whether a rule fits the schema of the input. `isForeign`: of an MCP server, so the author of the rule can't complete it. */
  | { readonly ask: 'rule'; readonly schema: string; readonly value: string; readonly isForeign: boolean }
  /** Whether the schema has what paths such as `customer.id` lead to. */
  | { readonly ask: 'paths'; readonly schema: string; readonly value: string };

/** Empty if nothing is wrong; null if it can't be evaluated: it is not known whether something is. */
export type Outcome = readonly Problem[] | null;

export function judge(task: Task): Outcome {
  try {
    const schema = JSON.parse(task.schema) as SchemaObject;
    switch (task.ask) {
      case 'schema':
        return checkSchema(schema, task.strictness);
      case 'value':
        return valueProblems(schema, JSON.parse(task.value));
      case 'rule':
        return ruleProblems(JSON.parse(task.value), schema, { refusesUndescribed: !task.isForeign });
      case 'paths':
        return pathProblems(JSON.parse(task.value), schema);
    }
  } catch {
    // A regular expression can exhaust the stack of its engine long before the time is over.
    return null;
  }
}

const MAX_ERRORS = 5;
const MAX_NAMED = 20;

/** All errors in one text, which is for the model. */
function valueProblems(schema: SchemaObject, value: unknown): Problem[] {
  const [ok, errors] = Schema.Errors(schema, value);
  if (ok) return [];
  // If a `false` schema refuses fields, the error of the keyword that contains it covers all of them.
  const specific = errors.filter(({ keyword }) => keyword !== 'boolean');
  const message = (specific.length > 0 ? specific : errors)
    .slice(0, MAX_ERRORS)
    .map((error) => `${error.instancePath || '/'} ${messageOf(error)}`)
    .join('; ');
  return [{ path: '', message }];
}

/** With the names or values that it is about, if there are few. */
function messageOf({ message, params }: { message: string; params: object }): string {
  const { additionalProperties, allowedValues } = params as Record<string, unknown[] | undefined>;
  if (additionalProperties && additionalProperties.length <= MAX_NAMED)
    return `${message}: ${additionalProperties.join(', ')}`;
  if (allowedValues && allowedValues.length <= MAX_NAMED)
    return `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}`;
  return message;
}
