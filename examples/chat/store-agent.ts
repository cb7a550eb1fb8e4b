import { createHash } from 'node:crypto';
import type { CreateAgent, Signalbox } from '@signalbox/client';

/** Creates the agent, or updates the one that has this name, and returns its id. An agent that has not changed gets no new version. */
export async function storeAgent(client: Signalbox, agent: CreateAgent): Promise<string> {
  const definition = createHash('sha256').update(JSON.stringify(agent)).digest('hex');
  const metadata = { ...agent.metadata, definition };
  for await (const stored of client.agents.list()) {
    if (stored.name !== agent.name || stored.metadata.definition === undefined) continue;
    if (stored.metadata.definition !== definition) await client.agents.update(stored.agentId, { ...agent, metadata });
    return stored.agentId;
  }
  return (await client.agents.create({ ...agent, metadata })).agentId;
}
