// What a route does with an input that is valid: what limits it, and the function that handlers.ts names.

import { type Route, type RouteName, routes, tokenViews } from '@signalbox/contract';
import type { PlannedChange } from '../db/planned-change.ts';
import type { Context, PoolContext } from '../lib/context.ts';
import { withoutTexts } from '../lib/json/json-text.ts';
import { type Limits, requireRoom } from './admission/limits.ts';
import { agentGateOf } from './auth/agent-gate.ts';
import type { Authorizer } from './auth/auth.ts';
import { type EnvironmentGate, environmentGateOf } from './auth/environment-gate.ts';
import { withTokenErrors } from './auth/token-errors.ts';
import { compiled } from './body/compiled.ts';
import { checks, eachResults, handlers, plans } from './handlers.ts';
import { type EachResult, eachOf, type Steps } from './idempotency/each.ts';

export interface StepParts {
  readonly authorizer: Authorizer;
  readonly limits: Limits;
  /** The limit of an organization; 0 is no limit. */
  readonly maxOpenSessions: number;
  /** Fails a request whose response differs from the contract: for tests. */
  readonly checkResponses: boolean;
}

type Handler = (ctx: Context, input: unknown) => Promise<unknown>;

/** What the route changes; undefined if that can't be planned. */
export type Plan = ((ctx: Context, input: unknown) => PlannedChange<unknown> | undefined) | undefined;

/** What the route does with an input that is valid. */
export function stepsOf(name: RouteName, route: Route, parts: StepParts): Steps & Pick<EnvironmentGate, 'leave'> {
  const { authorizer } = parts;
  const gate = environmentGateOf(route);
  const enterAgents = agentGateOf(route);
  const check = checks[name] as ((ctx: PoolContext, input: unknown) => Promise<void>) | undefined;
  return {
    name,
    route,
    leave: gate.leave,
    async enterReach(ctx, input) {
      if (!ctx.environments && !ctx.agents) return input;
      return authorizer.auditDenials(route, ctx, async () => enterAgents(ctx, await gate.enter(ctx, input)));
    },
    async check(ctx, input) {
      if (check) await authorizer.auditDenials(route, ctx, () => check(ctx, input));
    },
    act: actionOf(name, route, parts),
  };
}

/** For a route that does the same with each of several ids. */
export function forEachOf(name: RouteName, { each }: Route, parts: StepParts): ReturnType<typeof eachOf> | undefined {
  if (!each) return undefined;
  const inner = each.route as RouteName;
  const result = eachResults[name as keyof typeof eachResults] as EachResult;
  return eachOf(each, stepsOf(inner, routes[inner], parts), parts.limits, result);
}

/** The route's handler, with what applies around it inside the same transaction. */
function actionOf(name: RouteName, route: Route, parts: StepParts): Handler {
  const { maxOpenSessions } = parts;
  const handle = handlers[name as keyof typeof handlers] as Handler;
  const checkResponse = responseCheckOf(name, route, parts);
  const isLimited = maxOpenSessions > 0 && ['openSession', 'forkSession', 'runSchedule'].includes(name);
  return async (ctx, input) => {
    const value = await withTokenErrors(ctx, async () => {
      if (isLimited) await requireRoom(ctx, maxOpenSessions);
      return handle(ctx, input);
    });
    checkResponse(value);
    const view = ctx.token && (tokenViews as Partial<Record<RouteName, (value: unknown) => unknown>>)[name];
    if (!view) return value;
    const shown = view(value);
    checkResponse(shown);
    return shown;
  };
}

/** In tests, throws if a response differs from the contract. */
function responseCheckOf(name: RouteName, route: Route, { checkResponses }: StepParts): (value: unknown) => void {
  if (!checkResponses || route.stream) return () => {};
  return (value) => {
    // Compiling takes longer than most tests have for a route that they don't use.
    const expected = compiled(route.result);
    if (expected.Check(value) || expected.Check(withoutTexts(value))) return;
    throw new Error(`The response of ${name} differs from the contract: ${JSON.stringify(expected.Errors(value))}`);
  };
}

/** What the route changes, if it can be planned and nothing else applies around it. */
export function planOf(name: RouteName, route: Route, parts: StepParts): Plan {
  const plan = plans[name as keyof typeof plans] as Plan;
  if (!plan || parts.maxOpenSessions > 0) return undefined;
  const checkResponse = responseCheckOf(name, route, parts);
  return (ctx: Context, input: unknown) => {
    const planned = ctx.token ? undefined : plan(ctx, input);
    if (planned) checkResponse(planned.result);
    return planned;
  };
}
