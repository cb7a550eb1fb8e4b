// Whether what a model gives fits a schema: its tool's, an approval policy's, the one of its answer.
import Schema from 'typebox/schema';
import { bounded } from '../../lib/bounded.ts';

const MAX_ERRORS = 5;
// The keywords whose evaluation can take longer than schema and input are long. Others go without the cost of a bound.
const NEEDS_BOUND = /"(?:pattern|patternProperties|format|\$ref|\$dynamicRef|\$recursiveRef)":/;

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
  const [ok, errors] = NEEDS_BOUND.test(JSON.stringify(schema)) ? bounded(evaluate) : evaluate();
  if (ok) return undefined;
  return errors
    .slice(0, MAX_ERRORS)
    .map((error) => `${error.instancePath || '/'} ${error.message}`)
    .join('; ');
}
