// The one place where a key that is limited to some Environments is kept to them, for every route alike. What a request
// reaches is seen from what the contract says of its route:
//
//   it names an Environment (`env`, `environment`)        that has to be one of the key's
//   it names something that lives in one (a Session, …)   the Environment of that has to be one
//   it could ask for one and does not                     the key's own is filled in; a key of several has to say which
//   nothing of these, GET                                 allowed: what all Environments share may be read, and an answer that
//                                                         names another Environment after all is refused
//   nothing of these, a change                            refused: what all Environments share may not be changed, for it
//                                                         would change the others too. A key may rotate and delete itself
//
// So a new route is limited, or closed to such keys, before anybody thinks of it.
import type { Route, SchemaObject } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';

export interface EnvironmentGate {
  /** The input, with the key's Environment filled in where the route leaves it open. Throws 403 `insufficient_permission`. */
  enter(ctx: Context, input: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Throws 403 where an answer is of another Environment. */
  leave(ctx: Context, answer: unknown): void;
}

/** By the name of the parameter: the Environment of what it names. */
const holders: Readonly<Record<string, (organizationId: string, id: string) => Sql>> = {
  sessionId: (organizationId, id) => sql`
    select environment from sessions where organization_id = ${organizationId} and session_id = ${uuidOf('ses', id)}`,
  operationId: (organizationId, id) => sql`
    select environment from approvals where organization_id = ${organizationId} and operation_id = ${uuidOf('op', id)}`,
  scheduleId: (organizationId, id) => sql`
    select environment from schedules where organization_id = ${organizationId} and schedule_id = ${uuidOf('sch', id)}`,
  workerTurnId: (organizationId, id) => sql`
    select environment from sessions where organization_id = ${organizationId} and node_id = ${uuidOf('wtn', id)}`,
};

/** How a route is kept to the Environments of a key. */
export type Reach = 'environment' | 'open' | 'closed' | 'ownKey';

/** What the header of this file says of a route. */
export function reachOf(route: Route): Reach {
  const named = [...namesOf(route.params), ...namesOf(route.query), ...namesOf(route.body)];
  if (named.some((name) => name === 'env' || name === 'environment')) return 'environment';
  if (namesOf(route.params).some((name) => name in holders)) return 'environment';
  if (route.method === 'GET' && !route.stream) return 'open';
  return namesOf(route.params).includes('keyId') && !route.body ? 'ownKey' : 'closed';
}

export function environmentGateOf(route: Route): EnvironmentGate {
  const reach = reachOf(route);
  const inPath = new Set(namesOf(route.params));

  return {
    async enter(ctx, input) {
      if (!ctx.environments) return input;
      if (reach === 'open') return input;
      if (reach === 'ownKey' && ctx.keyId && input.keyId === formatId('key', ctx.keyId)) return input;
      if (reach !== 'environment') {
        throw refusal(ctx, 'this would change something that all environments share');
      }
      const named = [input.env, input.environment].filter((name) => typeof name === 'string');
      for (const name of named) requireOne(ctx, name);
      let isFixed = named.length > 0;
      for (const [name, environmentOf] of Object.entries(holders)) {
        const id = input[name];
        if (typeof id !== 'string') continue;
        const [row] = await ctx.db.query<{ environment: string }>(environmentOf(ctx.organizationId, id));
        if (row) requireOne(ctx, row.environment);
        // What is not there has no Environment: the route says 404 of its path, and filters by it find nothing.
        isFixed ||= row !== undefined || inPath.has(name);
      }
      if (isFixed) return input;
      const [only, ...others] = ctx.environments;
      if (others.length > 0) throw refusal(ctx, 'choose one with `environment`');
      return { ...input, environment: only };
    },

    leave(ctx, answer) {
      if (!ctx.environments || reach !== 'open') return;
      for (const resource of Object.values(answer as object)) {
        if (typeof resource !== 'object' || resource === null || !('environment' in resource)) continue;
        const { environment } = resource;
        if (typeof environment === 'string') requireOne(ctx, environment);
        else throw refusal(ctx, 'this belongs to the whole organization');
      }
    },
  };
}

function requireOne(ctx: Context, environment: string): void {
  if (!ctx.environments?.includes(environment)) throw refusal(ctx, `this belongs to "${environment}"`);
}

function refusal(ctx: Context, why: string): ApiError {
  const names = ctx.environments!.map((name) => `"${name}"`).join(', ');
  return new ApiError('insufficient_permission', `The key is limited to the environments ${names}; ${why}.`);
}

function namesOf(schema: unknown): string[] {
  return Object.keys((schema as SchemaObject | undefined)?.properties ?? {});
}
