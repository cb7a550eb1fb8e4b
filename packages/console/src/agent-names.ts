// The names of Agents, for lists that have their ids.
import type { Agent } from '@signalbox/client';
import { useMemo } from 'react';
import { useAsk } from './organization.tsx';

// Of an organization with more, the others are shown by id.
const MAX_AGENTS = 1000;

/** Those that are in use, newest first, and those that were archived. */
export function useAgents() {
  return useAsk(['agents', 'names'], async (client) => {
    const all: Agent[] = [];
    for (const archived of [false, true]) {
      for await (const agent of client.agents.list({ archived, limit: 100 })) {
        if (all.length >= MAX_AGENTS) break;
        all.push(agent);
      }
    }
    return all;
  });
}

export function useAgentNames(): ReadonlyMap<string, string> {
  const { data } = useAgents();
  return useMemo(() => new Map(data?.map(({ agentId, name }) => [agentId, name])), [data]);
}

/** An Agent among those to choose from. */
export function agentOption({ agentId, name, archivedAt }: Agent): { value: string; label: string } {
  return { value: agentId, label: archivedAt === null ? name : `${name} (archived)` };
}
