// Models that an agent still uses and that their provider ends soon, from the events about them.
import type { Agent, Event } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import { useAgents } from '../../data/agent-names.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Badge } from '../../ui/badge.tsx';
import { PlainText } from '../../ui/text.tsx';
import { inDays, useNow } from '../../ui/time.tsx';

export interface EndingModel {
  model: string;
  /** A day, such as `2026-12-11`. */
  endsAt: string;
  replacement: string | null;
  /** That still use it. */
  agents: Pick<Agent, 'agentId' | 'name'>[];
}

// The first event comes 60 days before the end. A model that has ended stays until its agents have another one.
const SHOWN_DAYS = 120;
const MOST_AGENTS = 3;
const EVERY_MS = 600_000;

/** Null if they could not be read. */
export function useEndingModels(): EndingModel[] | null | undefined {
  const { data: agents, error: agentsError } = useAgents();
  const { data: events, error } = useApiQuery(
    ['events', 'ending models'],
    async (client) => (await client.events.list({ type: 'model.ending', since: inDays(-SHOWN_DAYS), limit: 100 })).data,
    { everyMs: EVERY_MS },
  );
  if (error || agentsError) return null;
  if (!events || !agents) return undefined;
  // Newest first.
  const newest = new Map(events.toReversed().map((event) => [event.resource.id, event]));
  return [...newest.values()].flatMap((event) => {
    const users = agents.filter((agent) => agent.archivedAt === null && usesModel(agent, event.resource.id));
    return users.length > 0 ? endingOf(event, users) : [];
  });
}

function usesModel({ model }: Agent, name: string): boolean {
  const { fallbacks = [], compaction } = model;
  // A model of the same name at another address does not end with it.
  return [model, ...fallbacks, ...(compaction ? [compaction] : [])].some(
    (one) => one.baseUrl === undefined && `${one.provider}/${one.model}` === name,
  );
}

function endingOf({ resource, changes }: Event, agents: EndingModel['agents']): EndingModel {
  const replacement = changes?.replacement?.[1];
  return {
    model: resource.id,
    endsAt: String(changes?.endsAt?.[1]),
    replacement: typeof replacement === 'string' ? replacement : null,
    agents,
  };
}

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

export function EndingLine({ ending: { model, endsAt, replacement, agents } }: { ending: EndingModel }) {
  const { organizationId } = useOrganization();
  const hasEnded = Date.parse(endsAt) < useNow();
  return (
    <>
      <Badge tone={hasEnded ? 'bad' : 'warn'}>model</Badge>
      <span>
        <code>{model}</code> {hasEnded ? 'ended' : 'ends'} on {day.format(new Date(endsAt))}. Used by{' '}
        {agents.slice(0, MOST_AGENTS).map(({ agentId, name }, index) => (
          <Fragment key={agentId}>
            {index > 0 && ', '}
            <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId }}>
              <PlainText text={name} />
            </Link>
          </Fragment>
        ))}
        {agents.length > MOST_AGENTS && ` and ${counted(agents.length - MOST_AGENTS, 'other')}`}.
        {replacement && ` Its provider names ${replacement} instead.`}
      </span>
    </>
  );
}
