// Keeps a key that is limited to some agents to them, for every route alike, as environment-gate.ts does for environments. A session
// belongs to the agent that runs it, and so do its approvals, files, events and worker turns; a child session to the agent of the child.
//
//   it names an agent (`agentId`)                          it has to be one of the key's
//   it names something of one (a session, a schedule, …)   the agent of that has to be one of the key's
//   it could name one and does not                         the key's agent is filled in; a key with several has to name one
//   the contract says `agents: 'own'`                      its function shows and takes only what belongs to the key's agents
//   the contract says `agents: 'open'`                     allowed: it concerns no agent
//   none of these                                          refused: it would show or change what other agents use too. A key may rotate and
//                                                          delete itself (`ownKey` in the contract)
//
// A new route is therefore limited, or closed to such keys, by default.
import type { Route } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { fileBelongsTo, fileIsOnlyOf } from '../../files/files-of-agents.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';
import { namesOf } from './environment-gate.ts';

/** The input, with the key's agent filled in if the request does not name one. Throws 403 `insufficient_permission`. */
export type AgentGate = (ctx: Context, input: Record<string, unknown>) => Promise<Record<string, unknown>>;

interface Named {
  organizationId: string;
  id: string;
  agents: readonly string[];
  /** Whether the request changes it. */
  isChange: boolean;
}

/** By the name of the parameter: whether what it names belongs to the agents; no row if it does not exist. */
const holders: Readonly<Record<string, (named: Named) => Sql>> = {
  sessionId: ({ organizationId, id, agents }) => sql`
    select agent_id = any(${[...agents]}::uuid[]) as "isOwn" from sessions
    where organization_id = ${organizationId} and session_id = ${uuidOf('ses', id)}`,
  operationId: ({ organizationId, id, agents }) => sql`
    select agent_id = any(${[...agents]}::uuid[]) as "isOwn" from approvals
    where organization_id = ${organizationId} and operation_id = ${uuidOf('op', id)}`,
  scheduleId: ({ organizationId, id, agents }) => sql`
    select agent_id = any(${[...agents]}::uuid[]) as "isOwn" from schedules
    where organization_id = ${organizationId} and schedule_id = ${uuidOf('sch', id)}`,
  workerTurnId: ({ organizationId, id, agents }) => sql`
    select agent_id = any(${[...agents]}::uuid[]) as "isOwn" from sessions
    where organization_id = ${organizationId} and node_id = ${uuidOf('wtn', id)}`,
  fileId: ({ organizationId, id, agents, isChange }) => sql`
    select ${(isChange ? fileIsOnlyOf : fileBelongsTo)(agents)} as "isOwn" from files f
    where f.organization_id = ${organizationId} and f.file_id = ${uuidOf('file', id)}`,
};

/** How a route is restricted to the agents of a key; `named`: by what a request names. */
export type AgentReach = 'named' | 'own' | 'open' | 'ownKey' | 'closed';

/** Which row of the table above applies to a route. */
export function agentReachOf(route: Route): AgentReach {
  if (route.byPerson) return 'closed';
  if (route.scope === 'any') return 'open';
  if (route.agents) return route.agents;
  if (route.ownKey) return 'ownKey';
  const named = [route.params, route.query, route.body].flatMap(namesOf);
  return named.some((name) => name === 'agentId' || name in holders) ? 'named' : 'closed';
}

export function agentGateOf(route: Route): AgentGate {
  const reach = agentReachOf(route);
  const named = new Set([route.params, route.query, route.body].flatMap(namesOf));
  const inPath = new Set(namesOf(route.params));
  const byHolder = Object.keys(holders).filter((name) => named.has(name));

  return async (ctx, input) => {
    const { agents, organizationId } = ctx;
    if (!agents || reach === 'open') return input;
    if (reach === 'ownKey' && ctx.keyId && input.keyId === formatId('key', ctx.keyId)) return input;
    if (reach === 'closed' || reach === 'ownKey') throw refusal('this concerns more than its agents');

    let isFixed = false;
    if (typeof input.agentId === 'string') {
      if (!agents.includes(uuidOf('agt', input.agentId))) throw refusal('this belongs to another agent');
      isFixed = true;
    }
    for (const name of byHolder) {
      const id = input[name];
      if (typeof id !== 'string') continue;
      const [row] = await ctx.db.query<{ isOwn: boolean }>(
        holders[name]!({ organizationId, id, agents, isChange: route.method !== 'GET' }),
      );
      if (row && !row.isOwn) throw refusal('this belongs to another agent');
      // What does not exist has no agent: in a path it is a 404 of the route, and a filter by it finds nothing.
      isFixed ||= row !== undefined || inPath.has(name);
    }
    if (isFixed || reach === 'own') return input;
    const [only, ...others] = agents;
    if (named.has('agentId') && others.length === 0) return { ...input, agentId: formatId('agt', only!) };
    throw refusal(`choose one with \`${named.has('agentId') ? 'agentId' : byHolder[0]}\``);
  };
}

function refusal(why: string): ApiError {
  return new ApiError('insufficient_permission', `The key is limited to some agents; ${why}.`);
}
