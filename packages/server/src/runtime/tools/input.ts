// Whether what a model gives fits a schema: its tool's, an approval policy's, the one of its answer.
import Schema from 'typebox/schema';
import { bounded } from '../../lib/bounded.ts';

const MAX_ERRORS = 5;
const MAX_NAMED = 20;
// The keywords whose evaluation can take longer than schema and input are long. Others go without the cost of a bound, unless
// both are long: each entry of an array may be compared with each of an enum.
const NEEDS_BOUND = /"(?:pattern|patternProperties|format|\$ref|\$dynamicRef|\$recursiveRef)":/;
// Characters of the one times those of the other: some milliseconds.
const NEEDS_NO_BOUND = 1_000_000;

/** What is wrong with a tool's input, for the model to mend; undefined where nothing is. */
export function inputErrors(schema: Record<string, unknown>, input: unknown): string | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'it must be a JSON object';
  return valueErrors(schema, input);
}

/** The same for any JSON value. */
export function valueErrors(schema: Record<string, unknown>, value: unknown): string | undefined {
  try {
    return errorsOf(schema, value);
  } catch {
    return 'the schema cannot be evaluated for it';
  }
}

/** Whether a value matches; true also where that cannot be told, so that a person is asked rather than not. */
export function mayMatch(schema: Record<string, unknown>, value: unknown): boolean {
  try {
    return errorsOf(schema, value) === undefined;
  } catch {
    return true;
  }
}

function errorsOf(schema: Record<string, unknown>, value: unknown): string | undefined {
  const evaluate = () => Schema.Errors(schema, value);
  const text = JSON.stringify(schema);
  const isLong = text.length * JSON.stringify(value).length > NEEDS_NO_BOUND;
  const [ok, errors] = isLong || NEEDS_BOUND.test(text) ? bounded(evaluate) : evaluate();
  if (ok) return undefined;
  // What a schema that is `false` says of each field is said of all of them by the keyword that holds it.
  const told = errors.filter(({ keyword }) => keyword !== 'boolean');
  return (told.length > 0 ? told : errors)
    .slice(0, MAX_ERRORS)
    .map((error) => `${error.instancePath || '/'} ${messageOf(error)}`)
    .join('; ');
}

/** With the names or values that it is about, where they are few. */
function messageOf({ message, params }: { message: string; params: object }): string {
  const { additionalProperties, allowedValues } = params as Record<string, unknown[] | undefined>;
  if (additionalProperties && additionalProperties.length <= MAX_NAMED)
    return `${message}: ${additionalProperties.join(', ')}`;
  if (allowedValues && allowedValues.length <= MAX_NAMED)
    return `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}`;
  return message;
}
