// Offering what a turn needs of the integrator's own program, and taking its answer as a model's.
import sql from 'sql-template-tag';
import { firstExpiry } from '../../sessions/state/operations.ts';
import { storeOffer } from '../../sessions/state/submission.ts';
import type { AskModel } from '../models/model.ts';
import { readSubmission } from './read-submission.ts';
import type { TurnContext } from './turn-context.ts';

/**
 * Lets go of the Session with its queue named. When the turn's time is over, or an approval's, the service takes it back.
 * False, and nothing is written, where something came meanwhile.
 */
export async function offerStep({ session, state, deadline, platform: { wake } }: TurnContext): Promise<boolean> {
  const { operations, definition, tools, unavailable } = state;
  const expiry = firstExpiry(operations);
  const modelCall = operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
  const change = {
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

/** Who answers a step: the model, or for a worker's Agent the answer that its program has given. */
export function responderOf({ session, state, platform: { db } }: TurnContext, ask: AskModel): AskModel {
  if (state.definition.model.provider !== 'worker') return ask;
  return () => {
    const modelCall = state.operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
    if (!modelCall) throw new Error('No step waits for an answer');
    return readSubmission(db, session.row, modelCall);
  };
}
