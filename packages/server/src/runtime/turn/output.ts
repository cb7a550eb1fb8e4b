// Whether a response matches an agent's `outputSchema`.
import type { SessionError } from '@signalbox/contract';
import { parseJson } from '../../lib/json.ts';
import { storableJson } from '../../lib/text.ts';
import { valueErrors } from '../schemas/schemas.ts';
import type { TurnEnd } from './turn.ts';

export type Judgement =
  | { type: 'end'; end: TurnEnd }
  /** The model gets `message`, and is called once more. */
  | { type: 'repair'; message: string }
  | { type: 'fail'; error: SessionError };

export async function judgeOutput(
  organizationId: string,
  schema: Record<string, unknown>,
  text: string,
  isRepaired: boolean,
): Promise<Judgement> {
  const output = outputIn(text);
  const [wrong] =
    output === undefined ? ['it is not JSON'] : await valueErrors(organizationId, [{ schema, value: output }]);
  if (wrong === undefined) return { type: 'end', end: { stopReason: 'endTurn', output: storableJson(output) } };
  if (isRepaired) {
    const message = `The model's answer does not match outputSchema, also when asked again: ${wrong}`;
    return { type: 'fail', error: { code: 'output_invalid', message } };
  }
  return {
    type: 'repair',
    message: [
      `Your answer does not match the JSON Schema that is asked for: ${wrong}.`,
      'Answer again with one JSON value that matches it, and nothing else.',
      `The schema: ${JSON.stringify(schema)}`,
    ].join('\n'),
  };
}

/** The JSON of a response, which models often put into a fenced block; undefined if it is not JSON. */
export function outputIn(text: string): unknown {
  const whole = text.trim();
  const isFenced = whole.length >= 2 * FENCE.length && whole.startsWith(FENCE) && whole.endsWith(FENCE);
  return parseJson(isFenced ? whole.slice(FENCE.length, -FENCE.length).replace(/^json\b/i, '') : whole);
}

const FENCE = '```';
