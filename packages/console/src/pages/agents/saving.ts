// A new version is made of the one that the person has seen, and of no other.
import { type Agent, ConflictError, type Signalbox } from '@signalbox/client';
import { bodyOf, type Definition } from './definition.ts';

/** `newest`: another version was saved meanwhile, and nothing was done. */
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
