// The names of agents, for tables that would otherwise show ids.
import type { Signalbox } from '@signalbox/client';
import { shown } from './text.ts';

/** Names that were loaded once are kept, so that a list of many pages asks for each agent once. */
export function agentNames(client: Signalbox) {
  const names = new Map<string, string>();
  return {
    async load(ids: readonly string[]): Promise<void> {
      const missing = [...new Set(ids)].filter((id) => !names.has(id));
      await Promise.all(
        missing.map(async (agentId) => {
          const agent = await client.agents.get(agentId).catch(() => undefined);
          names.set(agentId, agent ? shown(agent.name) : agentId);
        }),
      );
    },
    /** Safe for a terminal; the id of an agent that can't be read. */
    of: (agentId: string) => names.get(agentId) ?? agentId,
  };
}
