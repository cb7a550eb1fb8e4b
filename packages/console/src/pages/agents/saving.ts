// A new version is made of the one that the person has seen. The service takes the last one that comes, so it is asked first.
import type { Agent, Signalbox } from '@signalbox/client';
import { bodyOf, type Definition } from './definition.ts';

/** `newest`: another version was saved meanwhile, and nothing was done. */
export type Saving = { saved: Agent } | { newest: Agent };

export async function saveVersion(
  client: Signalbox,
  { seen, definition }: { seen: Agent; definition: Definition },
): Promise<Saving> {
  const newest = await client.agents.get(seen.agentId);
  if (newest.version !== seen.version) return { newest };
  return { saved: await client.agents.update(seen.agentId, bodyOf(definition)) };
}

/** What to tell the person of a version that was saved; it may be that another came between the look and the change. */
export function savedWords(saved: Agent, seen: Agent): string {
  if (saved.version <= seen.version + 1) return `Saved as version ${saved.version}`;
  return `Saved as version ${saved.version}. Somebody saved version ${saved.version - 1} at the same moment: compare them.`;
}
