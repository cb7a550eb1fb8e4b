// Keeps a key that is limited to some environments to them, for every route alike. The contract of the route says what a request can
// reach:
//
//   it names an environment (`env`, `environment`)        it has to be one of the key's
//   it names something in one (a session, …)              the environment of that has to be one of the key's; a destination may
//                                                         belong to the whole organization, and is refused then
//   it could name one and does not                        the key's environment is filled in; a key with several has to name one
//   the contract says `environments: 'closed'`            refused
//   none of these, GET                                    allowed: data that all environments share may be read. A response that
//                                                         contains something of another environment is refused
//   an end user                                           refused: it has sessions in any of them
//   none of these, a change                               refused: it would change data that all environments share. A key may
//                                                         rotate and delete itself (`ownKey` in the contract)
//
// A new route is therefore limited, or closed to such keys, by default.
import type { Route, SchemaObject } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';

export interface EnvironmentGate {
  /** The input, with the key's environment filled in if the request does not name one. Throws 403 `insufficient_permission`. */
  enter(ctx: Context, input: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Throws 403 if a response is of another environment. */
  leave(ctx: Context, response: unknown): void;
}

/** By the name of the parameter: the environment of what it names. */
const holders: Readonly<Record<string, (organizationId: string, id: string) => Sql>> = {
  sessionId: (organizationId, id) => sql`
    select environment from sessions where organization_id = ${organizationId} and session_id = ${uuidOf('ses', id)}`,
  operationId: (organizationId, id) => sql`
    select environment from approvals where organization_id = ${organizationId} and operation_id = ${uuidOf('op', id)}`,
  scheduleId: (organizationId, id) => sql`
    select environment from schedules where organization_id = ${organizationId} and schedule_id = ${uuidOf('sch', id)}`,
  destinationId: (organizationId, id) => sql`
    select environment from destinations where organization_id = ${organizationId} and destination_id = ${uuidOf('dst', id)}`,
  fileId: (organizationId, id) => sql`
    select environment from files where organization_id = ${organizationId} and file_id = ${uuidOf('file', id)}`,
  workerTurnId: (organizationId, id) => sql`
    select environment from sessions where organization_id = ${organizationId} and node_id = ${uuidOf('wtn', id)}`,
};

/** How a route is restricted to the environments of a key. */
export type Reach = 'environment' | 'open' | 'closed' | 'ownKey';

/** Which row of the table above applies to a route. */
export function reachOf(route: Route): Reach {
  // Each id enters the gate of the other route (each.ts).
  if (route.each) return 'open';
  if (route.environments) return route.environments;
  const named = [...namesOf(route.params), ...namesOf(route.query), ...namesOf(route.body)];
  if (named.some((name) => name === 'env' || name === 'environment')) return 'environment';
  if (namesOf(route.params).some((name) => name in holders)) return 'environment';
  // An end user has sessions in any environment.
  if (namesOf(route.params).includes('endUserId')) return 'closed';
  if (route.method === 'GET' && !route.stream) return 'open';
  return route.ownKey ? 'ownKey' : 'closed';
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
        throw refusal(ctx, 'this concerns something that all environments share');
      }
      const named = [input.env, input.environment].filter((name) => typeof name === 'string');
      for (const name of named) requireOne(ctx, name);
      let isFixed = named.length > 0;
      for (const [name, environmentOf] of Object.entries(holders)) {
        const id = input[name];
        if (typeof id !== 'string') continue;
        const [row] = await ctx.db.query<{ environment: string | null }>(environmentOf(ctx.organizationId, id));
        if (row?.environment === null) throw refusal(ctx, 'this belongs to the whole organization');
        if (row) requireOne(ctx, row.environment);
        // What does not exist has no environment: in a path it is a 404 of the route, and a filter by it finds nothing.
        isFixed ||= row !== undefined || inPath.has(name);
      }
      if (isFixed) return input;
      const [only, ...others] = ctx.environments;
      if (others.length > 0) throw refusal(ctx, 'choose one with `environment`');
      return { ...input, environment: only };
    },

    leave(ctx, response) {
      if (!ctx.environments || reach !== 'open') return;
      for (const resource of Object.values(response as object)) {
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
  const noun = ctx.environments!.length === 1 ? 'environment' : 'environments';
  return new ApiError('insufficient_permission', `The key is restricted to the ${noun} ${names}; ${why}.`);
}

/** The fields of a schema of a route's input. */
export function namesOf(schema: unknown): string[] {
  return Object.keys((schema as SchemaObject | undefined)?.properties ?? {});
}
