// Offering a step to workers, and reading a worker's submission as a model's response.
import sql from 'sql-template-tag';
import type { AskModel } from '../models/model/model.ts';
import { firstExpiry } from '../session-rows/operations.ts';
import { storeOffer } from '../session-rows/submission.ts';
import { modelName } from '../usage/prices.ts';
import { readSubmission } from './read-submission.ts';
import { startChunks } from './response-items.ts';
import type { TurnContext } from './turn-context.ts';

/**
 * Releases the session with the name of its queue. At the turn's deadline, or when an approval expires, a node claims it again.
 * False, and nothing is written, if something arrived in the meantime.
 */
export async function offerStep({ session, state, deadline, platform: { wake } }: TurnContext): Promise<boolean> {
  const { operations, definition, tools, unavailable } = state;
  const expiry = firstExpiry(operations);
  const modelCall = operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
  const change = {
    // Text that an earlier worker appended is void by now, and the start of its response with it.
    items: modelCall ? startChunks(modelCall, modelName(definition.model)) : [],
    patch: [
      sql`queue = ${definition.model.queue}`,
      sql`runnable_at = ${expiry && expiry < deadline ? expiry : deadline}`,
      sql`turn_deadline = ${deadline}`,
    ],
    statements: modelCall ? [storeOffer(session.row, modelCall, tools, unavailable)] : [],
  };
  if (!(await session.commitAndRelease(change, operations))) return false;
  wake.publish('offered', { ...session.row, queue: definition.model.queue! });
  return true;
}

/** What responds to a step: the model, or for an agent of workers the submission of its worker. */
export function responderOf({ session, state, platform: { db } }: TurnContext, ask: AskModel): AskModel {
  if (state.definition.model.provider !== 'worker') return ask;
  return () => {
    const modelCall = state.operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
    if (!modelCall) throw new Error('No step waits for a response');
    return readSubmission(db, session.row, modelCall);
  };
}
