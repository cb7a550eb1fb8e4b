// What a member can decide: their role, and the only agents and environments whose approvals they can decide.
//
// The role of a member with such limits is stored as another one, so that a node of a release that does not know the limits refuses the
// member instead of ignoring them (migration 0054). Nothing outside of this file sees the stored one.
import { type CanDecide, type Input, type Role, unlimitedRoles } from '@signalbox/contract';
import sql, { raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../db/db.ts';
import { invalidField } from '../../lib/api-error.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';

/** Null: all of them. An empty list is none. */
export interface DecidingLimits {
  /** As UUIDs. */
  readonly decidesAgents: readonly string[] | null;
  readonly decidesEnvironments: readonly string[] | null;
}

/** What a member, or an invitation, gives a person. */
export interface Access extends DecidingLimits {
  readonly role: Role;
}

/** Who makes or changes a limit names those fields that it has. */
export type WantedLimits = Input<'updateMember'>['canDecide'];

export const noLimits: DecidingLimits = { decidesAgents: null, decidesEnvironments: null };

const STORED = 'limited ';

/** The columns of `Access`, of `members` or `invitations` under this alias. */
export function accessColumns(alias: 'm' | 'i'): Sql {
  const of = raw(alias);
  return sql`replace(${of}.role, '${raw(STORED)}', '') as role, ${of}.decides_agents as "decidesAgents",
    ${of}.decides_environments as "decidesEnvironments"`;
}

/** The value of the column `role`. */
export function storedRole(access: Access): string {
  return isLimited(access) ? `${STORED}${access.role}` : access.role;
}

function isLimited({ decidesAgents, decidesEnvironments }: DecidingLimits): boolean {
  return decidesAgents !== null || decidesEnvironments !== null;
}

/** As the API and the event log show it. */
export function viewCanDecide(limits: DecidingLimits): CanDecide | null {
  if (!isLimited(limits)) return null;
  const { decidesAgents, decidesEnvironments } = limits;
  return {
    agents: decidesAgents?.map((agentId) => formatId('agt', agentId)) ?? null,
    environments: decidesEnvironments && [...decidesEnvironments],
  };
}

/**
 * The access of `before` with what a request changes. 400 for an agent or an environment that does not exist, and for limits of a role that
 * could lift them.
 */
export async function changedAccess(
  tx: Tx,
  organizationId: string,
  before: Access,
  { role = before.role, canDecide }: { role?: Role; canDecide?: WantedLimits },
): Promise<Access> {
  const { agents, environments } = canDecide === null ? { agents: null, environments: null } : wantedIn(canDecide);
  await requireExisting(tx, organizationId, agents ?? [], environments ?? []);
  const after = {
    role,
    decidesAgents: agents === undefined ? before.decidesAgents : agents,
    decidesEnvironments: environments === undefined ? before.decidesEnvironments : environments,
  };
  if (isLimited(after) && unlimitedRoles.includes(role)) {
    throw invalidField('canDecide', `must be null with the role ${role}, which can lift every limit`);
  }
  return after;
}

/** Undefined: as before. */
function wantedIn({ agents, environments }: NonNullable<WantedLimits> = {}) {
  return { agents: agents?.map((agentId) => uuidOf('agt', agentId)) ?? (agents as null | undefined), environments };
}

/** With a mistyped name a member could decide nothing there, and with the right one added later, more than was looked at. */
async function requireExisting(
  tx: Tx,
  organizationId: string,
  agents: readonly string[],
  environments: readonly string[],
): Promise<void> {
  if (agents.length + environments.length === 0) return;
  const [foundAgents, foundEnvironments] = await Promise.all([
    tx.query<{ agentId: string }>(sql`
      select agent_id as "agentId" from agents
      where organization_id = ${organizationId} and agent_id = any(${[...agents]}::uuid[]) and version > 0`),
    tx.query<{ name: string }>(sql`
      select name from environments
      where organization_id = ${organizationId} and name = any(${[...environments]}::text[])`),
  ]);
  for (const [index, agentId] of agents.entries()) {
    if (foundAgents.some((found) => found.agentId === agentId)) continue;
    throw invalidField(`canDecide.agents[${index}]`, `must be an agent: there is no ${formatId('agt', agentId)}`);
  }
  for (const [index, name] of environments.entries()) {
    if (foundEnvironments.some((found) => found.name === name)) continue;
    throw invalidField(`canDecide.environments[${index}]`, `must be an environment: there is no "${name}"`);
  }
}
