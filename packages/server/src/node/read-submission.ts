// Converts a worker's submission to the events of a model's response, for the turn machine.
import type { Db } from '../db/db.ts';
import { type ModelEvent, ModelFailure, type ReportedUsage } from '../models/model/model.ts';
import type { Operation } from '../session-rows/operations.ts';
import { SHOWN_TEXT_MAX_CHARACTERS, shownText, type TurnOfSession } from '../session-rows/shown-text.ts';
import { callOfWorker, type Submission } from '../session-rows/submission.ts';

/** Reads the stored submission. Throws `ModelFailure` if it is an error, or too long. */
export async function* readSubmission(
  db: Pick<Db, 'query'>,
  owner: TurnOfSession,
  modelCall: Operation,
): AsyncGenerator<ModelEvent> {
  const { workerTurnId, toolCalls, ran, stopReason, usage, costUsd, error } = modelCall.output as Submission;
  // The machine reads each submission once, and then uses the field itself.
  modelCall.output = null;
  const reported = { ...usage, ...(costUsd !== undefined && { costUsd }) };
  const failed = { retryable: false, usage: isNothing(reported) ? undefined : reported };
  if (error) throw new ModelFailure(error.code, error.message, failed);
  const text = await shownText(db, owner, modelCall);
  if (text.length > SHOWN_TEXT_MAX_CHARACTERS) {
    const message = `The response is longer than ${SHOWN_TEXT_MAX_CHARACTERS} characters.`;
    throw new ModelFailure('worker_failed', message, failed);
  }
  if (text !== '') yield { type: 'shown', text };
  if (ran) yield { type: 'ran', ...ran };
  for (const [index, { tool, input }] of toolCalls.entries()) {
    const operationId = workerTurnId === undefined ? {} : { operationId: callOfWorker(workerTurnId, index) };
    yield { type: 'toolCall', name: tool, input, ...operationId };
  }
  yield {
    type: 'finish',
    reason: toolCalls.length > 0 ? 'toolCalls' : stopReason,
    usage: reported,
  };
}

/** A worker that fails before it calls a model reports nothing, and its step does not count. */
function isNothing({ inputTokens, outputTokens, costUsd = 0 }: ReportedUsage): boolean {
  return inputTokens + outputTokens + costUsd === 0;
}
