// Who may decide an approval: one pure function, which the route asks before it acts, and the API shows for each caller.
//
// A caller has identities: a person has one; a key has its own and those of its creators; a session token has its end user's
// and its key's. Two callers that share an identity are one approver: two keys of a person, or a person and their key, count once.
// A caller that opened the session or sent it input is a requester. Approvers that exclude requesters also exclude the keys that these
// created, but not the creator of a requester: otherwise the person who sets up all keys could never approve.
//
// An approval keeps the approvers and requesters that it was created with. Neither a new version of the agent nor a later message
// changes them.
import { type Approvers, type Role, scopesOfRole } from '@signalbox/contract';
import type { Context } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';
import type { Access, DecidingLimits } from '../people/memberships/can-decide.ts';

/** A caller, as far as approvals distinguish it. */
export type Decider = {
  /** Whether it has the scope to decide approvals at all. */
  readonly canDecide: boolean;
  /** Its own first. */
  readonly identities: readonly string[];
} & (
  | { readonly type: 'person'; readonly role: Role; readonly limits: DecidingLimits }
  | { readonly type: 'key' }
  | { readonly type: 'endUser' }
);

/** What `mayDecide` reads of an approval. `agentId`: a UUID. */
export interface DecidedCall {
  readonly agentId: string;
  readonly environment: string;
  /** Null if the approvers do not exclude them. */
  readonly requesters: readonly string[] | null;
  readonly decisions: readonly { readonly decision: string; readonly deciders: readonly string[] }[];
}

/** Why a caller can't decide. */
export interface Refusal {
  readonly code: 'insufficient_permission' | 'not_an_approver' | 'already_decided_by_you';
  readonly message: string;
}

export function deciderOf(ctx: Context): Decider {
  const identities = identitiesOf(ctx);
  if (ctx.person) return personDecider(identities, ctx.person);
  const canDecide = ctx.scopes.has('approvals:decide');
  if (ctx.token) {
    const endUser = `end_user:${ctx.token.endUser?.id ?? ''}`;
    const may = canDecide && ctx.token.scopes.includes('decide');
    return { type: 'endUser', canDecide: may, identities: [endUser, ...identities] };
  }
  return { type: 'key', canDecide, identities: [...identities, ...(ctx.keyCreatedBy ?? [])] };
}

/** A member. */
export function personDecider(identities: readonly string[], { role, ...limits }: Access): Decider {
  const canDecide = scopesOfRole[role].has('approvals:decide');
  return { type: 'person', role, limits, canDecide, identities };
}

/** Why the caller can't approve; null if it can. A caller that `already_decided_by_you` refuses can still deny. */
export function mayDecide(by: Approvers | null, caller: Decider, approval: DecidedCall): Refusal | null {
  if (!caller.canDecide)
    return { code: 'insufficient_permission', message: 'Deciding approvals needs the scope "approvals:decide".' };
  const notAmong =
    whyBeyondLimits(caller, approval) ?? whyNotAmong(by, caller) ?? whyRequester(by, caller, approval.requesters ?? []);
  if (notAmong !== null) return { code: 'not_an_approver', message: notAmong };
  if (
    approval.decisions.some((made) => made.decision === 'approved' && isSameDecider(made.deciders, caller.identities))
  )
    return {
      code: 'already_decided_by_you',
      message:
        caller.type === 'key'
          ? 'This key, or a key or person that counts as the same approver, has already approved. Another approver has to decide.'
          : 'You have already approved, here or with a key that you created. Another approver has to decide.',
    };
  return null;
}

/** Whether two callers count as one approver. */
export function isSameDecider(one: readonly string[], other: readonly string[]): boolean {
  return one.some((identity) => other.includes(identity));
}

/**
 * What a session keeps of a tool whose later calls run without approval: its name, and the rule of who could approve that. A later version
 * of the agent may name other approvers, and a grant under the old rule does not count for it.
 */
export function grantFor(name: string, by: Approvers | null): string {
  const { people, roles, keys, endUser, notRequester, count = 1 } = by ?? {};
  const rule = { people, roles: roles?.toSorted(), keys, endUser, notRequester, ...(count > 1 && { count }) };
  const text = JSON.stringify(rule);
  return text === '{}' ? name : `${name} ${text}`;
}

/** Without any of the four, people and keys may decide. */
function isDefault({ people, roles, keys, endUser }: Approvers): boolean {
  return !people && !roles && !keys && !endUser;
}

function whyBeyondLimits(caller: Decider, { agentId, environment }: DecidedCall): string | null {
  if (caller.type !== 'person') return null;
  const { decidesAgents, decidesEnvironments } = caller.limits;
  if (decidesEnvironments !== null && !decidesEnvironments.includes(environment))
    return `You can decide approvals only in certain environments, and ${environment} is not one of them.`;
  if (decidesAgents !== null && !decidesAgents.includes(agentId))
    return 'You can decide approvals only of certain agents, and the agent of this call is not one of them.';
  return null;
}

function whyNotAmong(by: Approvers | null, caller: Decider): string | null {
  const { people, roles, keys, endUser } = by === null || isDefault(by) ? { ...by, people: true, keys: true } : by;
  switch (caller.type) {
    case 'person':
      if (people || roles?.some((role) => role === caller.role)) return null;
      return roles
        ? `Only people with the role ${inWords(roles)} may decide this; yours is ${caller.role}.`
        : `Only ${keys ? 'API keys' : "the session's end user"} may decide this.`;
    case 'key':
      return keys ? null : 'API keys may not decide this.';
    case 'endUser':
      return endUser ? null : 'End users may not decide this.';
  }
}

function whyRequester(by: Approvers | null, caller: Decider, requesters: readonly string[]): string | null {
  if (!by?.notRequester) return null;
  if (caller.type === 'endUser') return 'A requester may not decide this, and the session is for this end user.';
  const [own, ...creators] = caller.identities;
  if (requesters.includes(own!))
    return caller.type === 'key'
      ? 'A requester may not decide this: this key opened the session or sent it input.'
      : 'A requester may not decide this: you opened the session or sent it input.';
  if (creators.some((identity) => requesters.includes(identity)))
    return 'A requester may not decide this, and one of them created this key.';
  return null;
}

function inWords(roles: readonly Role[]): string {
  return roles.length < 2 ? roles.join() : `${roles.slice(0, -1).join(', ')} or ${roles.at(-1)}`;
}
