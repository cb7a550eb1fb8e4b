// The names of agents, for lists that have only their ids.
import type { Agent, Session } from '@signalbox/client';
import { useCallback, useMemo } from 'react';
import { useApiQuery } from './organization.tsx';

// An organization with more shows the others by id.
const MAX_AGENTS = 1000;

/** Active agents, newest first, then archived ones. */
export function useAgents() {
  return useApiQuery(['agents', 'names'], async (client) => {
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

/** The name of an agent; its id if the name is not known, but not while names load. */
export function useAgentName(): (agentId: string) => string {
  const { isPending } = useAgents();
  const names = useAgentNames();
  return (agentId) => names.get(agentId) ?? (isPending ? '…' : agentId);
}

/**
 * The name of a session's agent. A draft need not have an agent: the name in its definition is shown by the session's own page. It may be that
 * of an agent as well, so a list also marks drafts.
 */
export function useSessionName(): (session: Pick<Session, 'agentId' | 'draft'>) => string {
  const { isPending } = useAgents();
  const names = useAgentNames();
  return useCallback(
    ({ agentId, draft }) => names.get(agentId) ?? (isPending ? '…' : draft ? UNSAVED : agentId),
    [names, isPending],
  );
}

/** In place of the name of an agent, for a draft of none. */
export const UNSAVED = 'Unsaved agent';

/** An agent as an option of a select. */
export function agentOption({ agentId, name, archivedAt }: Agent): { value: string; label: string } {
  return { value: agentId, label: archivedAt === null ? name : `${name} (archived)` };
}
