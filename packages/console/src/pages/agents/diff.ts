import { type Definition, sorted, whole } from './definition.ts';

/** What of a definition is compared, so that only real changes differ: key order and omitted defaults are none. */
export function definitionTexts(definition: Definition): { instructions: string; rest: string } {
  const { instructions, ...rest } = whole(definition);
  return { instructions: String(instructions), rest: JSON.stringify(sorted(rest), null, 2) };
}
