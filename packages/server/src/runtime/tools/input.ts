// Whether what a model gives fits its tool's schema.
import Schema from 'typebox/schema';
import { bounded } from '../../lib/bounded.ts';

const MAX_ERRORS = 5;
// The keywords whose evaluation can take longer than schema and input are long. Others go without the cost of a bound.
const NEEDS_BOUND = /"(?:pattern|patternProperties|format|\$ref|\$dynamicRef|\$recursiveRef)":/;

/** What is wrong with an input, for the model to mend; undefined where nothing is. */
export function inputErrors(schema: Record<string, unknown>, input: unknown): string | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'it must be a JSON object';
  const evaluate = () => Schema.Errors(schema, input);
  try {
    const [ok, errors] = NEEDS_BOUND.test(JSON.stringify(schema)) ? bounded(evaluate) : evaluate();
    if (ok) return undefined;
    return errors
      .slice(0, MAX_ERRORS)
      .map((error) => `${error.instancePath || '/'} ${error.message}`)
      .join('; ');
  } catch {
    return 'the schema cannot be evaluated for it';
  }
}
