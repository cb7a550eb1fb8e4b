/**
 * The HTTP API as one table, by tag. The server's routes, the permission check, the validation, the OpenAPI document and the
 * client's types are derived from it. Paths are below `/api/v1`.
 */
import { agentRoutes } from './routes/agents.ts';
import { analyticsRoutes } from './routes/analytics.ts';
import { approvalRoutes } from './routes/approvals.ts';
import { authoringRoutes } from './routes/authoring.ts';
import { budgetRoutes } from './routes/budgets.ts';
import { destinationRoutes } from './routes/destinations.ts';
import { endUserRoutes } from './routes/end-users.ts';
import { environmentRoutes } from './routes/environments.ts';
import { eventRoutes } from './routes/events.ts';
import { fileRoutes } from './routes/files.ts';
import { keyRoutes } from './routes/keys.ts';
import { type OperatorRouteName, operatorRoutes } from './routes/operator.ts';
import { overviewRoutes } from './routes/overview.ts';
import { peopleRoutes } from './routes/people.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { shareRoutes } from './routes/shares.ts';
import { tokenRoutes } from './routes/tokens.ts';
import { usageRoutes } from './routes/usage.ts';
import { webhookRoutes } from './routes/webhook-subscriptions.ts';
import { workerTurnRoutes } from './routes/worker-turns.ts';
import type { Static, TSchema } from './schema.ts';

export type { Route } from './routes/route.ts';
export { type OperatorRouteName, operatorRoutes };

export const routes = {
  ...keyRoutes,
  ...agentRoutes,
  ...authoringRoutes,
  ...environmentRoutes,
  ...sessionRoutes,
  ...shareRoutes,
  ...tokenRoutes,
  ...endUserRoutes,
  ...fileRoutes,
  ...approvalRoutes,
  ...workerTurnRoutes,
  ...scheduleRoutes,
  ...webhookRoutes,
  ...destinationRoutes,
  ...overviewRoutes,
  ...usageRoutes,
  ...analyticsRoutes,
  ...budgetRoutes,
  ...peopleRoutes,
  ...eventRoutes,
};

/** All that the API reference describes. */
export const documentedRoutes = { ...routes, ...operatorRoutes };

export type Routes = typeof routes;
export type RouteName = keyof Routes;

type Part<R, K extends 'params' | 'query' | 'body'> = R extends { readonly [P in K]: infer S extends TSchema }
  ? Static<S>
  : unknown;

/** The input of a route: path parameters, query and body in one object. No two of them have a field of the same name. */
export type Input<N extends RouteName> = Part<Routes[N], 'params'> & Part<Routes[N], 'query'> & Part<Routes[N], 'body'>;
type OperatorRoutes = typeof operatorRoutes;
/** As `Input`, of a route of the operator. */
export type OperatorInput<N extends OperatorRouteName> = Part<OperatorRoutes[N], 'params'> &
  Part<OperatorRoutes[N], 'query'> &
  Part<OperatorRoutes[N], 'body'>;
export type OperatorResult<N extends OperatorRouteName> = Static<OperatorRoutes[N]['result']>;
/** The body of a route's successful response. */
export type Result<N extends RouteName> = Static<Routes[N]['result']>;
