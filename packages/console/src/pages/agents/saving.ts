// A new version is based on the one that the user saw, never on another.
import { type Agent, ConflictError, type Signalbox } from '@signalbox/client';
import { bodyOf, type Definition } from './definition.ts';

/** `newest`: another version was saved in the meantime, so nothing was saved. */
export type Saving = { saved: Agent } | { newest: Agent };

export async function saveVersion(
  client: Signalbox,
  { seen, definition }: { seen: Agent; definition: Definition },
): Promise<Saving> {
  try {
    return {
      saved: await client.agents.update(seen.agentId, { ...bodyOf(definition), expectedVersion: seen.version }),
    };
  } catch (error) {
    if (!(error instanceof ConflictError && error.code === 'conflict')) throw error;
    return { newest: await client.agents.get(seen.agentId) };
  }
}
