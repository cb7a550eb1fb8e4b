// What a model's response means for its turn: whether it matches the agent's `outputSchema`, and whether one that its token limit has
// cut is continued.
import type { SessionError } from '@signalbox/contract';
import { parseJson } from '../lib/json/json.ts';
import { storableJson } from '../lib/text.ts';
import { valueErrors } from '../schemas/schemas.ts';
import type { Operation } from '../session-rows/operations.ts';
import { callsOf } from './calls.ts';
import type { NormalEnd, TurnState } from './turn.ts';

type Judgement =
  | { type: 'end'; end: NormalEnd }
  /** The model gets `message`, and is called once more. */
  | { type: 'repair'; message: string }
  | { type: 'fail'; error: SessionError }
  /** The model is called again to continue it. */
  | { type: 'continue' };

/** What a response without tool calls, or one that was cut off, means for the turn. */
export async function judge(state: TurnState, modelCall: Operation): Promise<Judgement> {
  const { organizationId, definition, operations, transcript } = state;
  const { stopReason = 'endTurn' } = (modelCall.output ?? {}) as Partial<NormalEnd>;
  const { outputSchema } = definition;
  if (mayContinue(state, modelCall)) return { type: 'continue' };
  if (stopReason !== 'endTurn' || outputSchema === null) return { type: 'end', end: { stopReason } };
  // A response that was continued is one text.
  const text = transcript
    .slice(transcript.findLastIndex(({ role }) => role !== 'assistant') + 1)
    .flatMap(({ content }) => content.map((part) => (part.type === 'text' ? part.text : '')))
    .join('');
  // An earlier response without calls that was not cut is one that was rejected before.
  const isRepaired = operations.some(
    (operation) =>
      isAnswered(operation) &&
      operation.step < modelCall.step &&
      !isCut(operation) &&
      callsOf(operations, operation.step).length === 0,
  );
  return judgeOutput(organizationId, outputSchema, text, isRepaired);
}

/**
 * Whether the model is called again because its token limit has cut this response. A worker's program decides that itself. A response
 * that was cut while the model was still thinking has nothing that could be continued: the same request would end the same way.
 */
function mayContinue(state: TurnState, modelCall: Operation): boolean {
  const { definition, operations, transcript } = state;
  if (!isCut(modelCall) || definition.model.provider === 'worker' || isLastStep(state)) return false;
  const { role, content } = transcript.at(-1)!;
  if (role !== 'assistant' || content.every((part) => part.type === 'text' && part.text.trim() === '')) return false;
  const before = operations.filter((operation) => operation.step < modelCall.step && isCut(operation));
  return before.length < definition.limits.continueWhenCut;
}

/** The model call with which a response begins: calls without tool calls that were cut, and the one that continued them. */
export function firstOfResponse(operations: readonly Operation[], last: Operation): Operation {
  const before = operations.findLast((operation) => isAnswered(operation) && operation.step < last.step);
  const isContinued = before && isCut(before) && callsOf(operations, before.step).length === 0;
  return isContinued ? firstOfResponse(operations, before) : last;
}

function isCut({ kind, output }: Operation): boolean {
  return kind === 'model' && (output as Partial<NormalEnd> | null)?.stopReason === 'maxOutputTokens';
}

/** A model call that failed does not count: the turn was retried, and another one followed. */
export function isLastStep({ definition, operations }: TurnState): boolean {
  return operations.filter(isAnswered).length >= definition.limits.maxStepsPerTurn;
}

/** A model call that has a response. */
function isAnswered({ kind, status }: Operation): boolean {
  return kind === 'model' && status === 'succeeded';
}

async function judgeOutput(
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
    const message = `The model's response does not match outputSchema, even after a retry: ${wrong}`;
    return { type: 'fail', error: { code: 'output_invalid', message } };
  }
  return {
    type: 'repair',
    message: [
      `Your response does not match the required JSON Schema: ${wrong}.`,
      'Respond again with one JSON value that matches it, and nothing else.',
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
