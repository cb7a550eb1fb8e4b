// Every page and its URL. A page's code is loaded when it is opened. Filters are in the URL, so that a link shows the same list.
import type { Account } from '@signalbox/contract/console';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
  retainSearchParams,
} from '@tanstack/react-router';
import { accountQuery, queryClient } from './data/account.ts';
import { rememberedEnvironment } from './data/environment.ts';
import { Shell } from './frame/shell.tsx';
import { environmentPattern, textIn } from './lib/search-params.ts';
import { agentSearch, agentsSearch, newAgentSearch, versionsSearch } from './pages/agents/search-params.ts';
import { approvalsSearch } from './pages/approvals/search-params.ts';
import { eventsSearch } from './pages/events/search-params.ts';
import { overviewSearch } from './pages/overview/search-params.ts';
import { playgroundSearch } from './pages/playground/search-params.ts';
import { scheduleSearch, schedulesSearch } from './pages/schedules/search-params.ts';
import { compareSearch, sessionSearch, sessionsSearch } from './pages/sessions/search-params.ts';
import { usageSearch } from './pages/usage/search-params.ts';
import { subscriptionSearch } from './pages/webhooks/search-params.ts';
import { SkeletonRows } from './ui/skeleton.tsx';
import { FailedPage, FailedPageOfOrganization, NotFoundPage, NotFoundPageOfOrganization } from './ui/unavailable.tsx';

const root = createRootRoute({ component: Outlet });

const loadAccount = () => queryClient.ensureQueryData(accountQuery);

/** The organization that the user opened last, else the first. The sign-in page without a sign-in. */
function home(account: Account, from?: string, wasOpen = false) {
  if (!account.user) {
    return redirect({ to: '/sign-in', search: { ...(from && { from }), ...(wasOpen && { expired: true }) } });
  }
  const last = localStorage.getItem('signalbox.organization');
  const organization = account.organizations.find((one) => one.organizationId === last) ?? account.organizations[0];
  if (!organization) return redirect({ to: '/organizations/new' });
  return redirect({ to: '/$organizationId', params: { organizationId: organization.organizationId } });
}

const index = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: async () => {
    throw home(await loadAccount());
  },
});

/** A page that is loaded when it is opened. The router would reload the document if that fails, also while the service is down. */
function lazyPage<T extends Record<string, unknown>, K extends keyof T>(load: () => Promise<T>, name: K) {
  const loadOrThrow = () =>
    load().catch((cause: unknown) => {
      throw new Error('The page could not be loaded', { cause });
    });
  return lazyRouteComponent(loadOrThrow, name);
}

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: ({
    from,
    error,
    expired,
  }: Record<string, unknown>): { from?: string; error?: string; expired?: true } => ({
    ...(typeof from === 'string' && { from }),
    // Set if the session ended while a page was open.
    ...(expired === true && { expired }),
    // Set if the sign-in provider refused the user.
    ...(typeof error === 'string' && { error }),
  }),
  beforeLoad: async () => {
    const account = await loadAccount();
    if (account.user) throw home(account);
  },
  component: lazyPage(() => import('./pages/sign-in/sign-in.tsx'), 'SignInPage'),
});

/** The page of invitation, setup and password links. The token is in the fragment, which no server sees. */
const link = createRoute({
  getParentRoute: () => root,
  path: '/link',
  beforeLoad: loadAccount,
  component: lazyPage(() => import('./pages/sign-in/link.tsx'), 'LinkPage'),
});

/** What a share link shows. Without a sign-in: the token is in the fragment. */
const share = createRoute({
  getParentRoute: () => root,
  path: '/share',
  component: lazyPage(() => import('./pages/share/share.tsx'), 'SharePage'),
});

const newOrganization = createRoute({
  getParentRoute: () => root,
  path: '/organizations/new',
  beforeLoad: async () => {
    if (!(await loadAccount()).user) throw redirect({ to: '/sign-in' });
  },
  component: lazyPage(() => import('./pages/organizations/new-organization.tsx'), 'NewOrganizationPage'),
});

/** Every part of ui/ in every state. It shows no data, so it needs no sign-in. */
const system = createRoute({
  getParentRoute: () => root,
  path: '/_system',
  component: lazyPage(() => import('./pages/system/system.tsx'), 'SystemPage'),
});

const organization = createRoute({
  getParentRoute: () => root,
  path: '/$organizationId',
  // Every link keeps the environment, unless it names another.
  validateSearch: (search: Record<string, unknown>): { environment?: string | undefined } =>
    textIn(search, 'environment', environmentPattern),
  search: { middlewares: [retainSearchParams(['environment'])] },
  beforeLoad: async ({ params, search, location, cause }) => {
    const account = await loadAccount();
    const membership = account.organizations.find((one) => one.organizationId === params.organizationId);
    if (!account.user || !membership) throw home(account, location.href, cause === 'stay');
    localStorage.setItem('signalbox.organization', membership.organizationId);
    const environment = rememberedEnvironment(membership.organizationId);
    if (cause === 'enter' && search.environment === undefined && environment !== undefined) {
      throw redirect({
        to: location.pathname,
        search: { ...location.search, environment },
        hash: location.hash,
        replace: true,
      });
    }
  },
  component: Shell,
  notFoundComponent: NotFoundPageOfOrganization,
});

const inOrganization = { getParentRoute: () => organization, errorComponent: FailedPageOfOrganization };

const approvals = createRoute({
  ...inOrganization,
  path: '/approvals',
  validateSearch: approvalsSearch,
  component: lazyPage(() => import('./pages/approvals/approvals.tsx'), 'ApprovalsPage'),
});

const approval = createRoute({
  ...inOrganization,
  path: '/approvals/$operationId',
  component: lazyPage(() => import('./pages/approvals/approval.tsx'), 'ApprovalPage'),
});

const overview = createRoute({
  ...inOrganization,
  path: '/',
  validateSearch: overviewSearch,
  component: lazyPage(() => import('./pages/overview/overview.tsx'), 'OverviewPage'),
});

const sessions = createRoute({
  ...inOrganization,
  path: '/sessions',
  validateSearch: sessionsSearch,
  component: lazyPage(() => import('./pages/sessions/sessions.tsx'), 'SessionsPage'),
});

const session = createRoute({
  ...inOrganization,
  path: '/sessions/$sessionId',
  validateSearch: sessionSearch,
  component: lazyPage(() => import('./pages/sessions/session.tsx'), 'SessionPage'),
});

const compare = createRoute({
  ...inOrganization,
  path: '/sessions/$sessionId/compare',
  validateSearch: compareSearch,
  component: lazyPage(() => import('./pages/sessions/compare.tsx'), 'ComparePage'),
});

const agents = createRoute({
  ...inOrganization,
  path: '/agents',
  validateSearch: agentsSearch,
  component: lazyPage(() => import('./pages/agents/agents.tsx'), 'AgentsPage'),
});

const newAgent = createRoute({
  ...inOrganization,
  path: '/agents/new',
  validateSearch: newAgentSearch,
  component: lazyPage(() => import('./pages/agents/new-agent.tsx'), 'NewAgentPage'),
});

const agent = createRoute({
  ...inOrganization,
  path: '/agents/$agentId',
  validateSearch: agentSearch,
  component: lazyPage(() => import('./pages/agents/agent.tsx'), 'AgentPage'),
});

const agentVersions = createRoute({
  ...inOrganization,
  path: '/agents/$agentId/versions',
  validateSearch: versionsSearch,
  component: lazyPage(() => import('./pages/agents/versions.tsx'), 'AgentVersionsPage'),
});

const playground = createRoute({
  ...inOrganization,
  path: '/playground',
  validateSearch: playgroundSearch,
  component: lazyPage(() => import('./pages/playground/playground.tsx'), 'PlaygroundPage'),
});

const schedules = createRoute({
  ...inOrganization,
  path: '/schedules',
  validateSearch: schedulesSearch,
  component: lazyPage(() => import('./pages/schedules/schedules.tsx'), 'SchedulesPage'),
});

const schedule = createRoute({
  ...inOrganization,
  path: '/schedules/$scheduleId',
  validateSearch: scheduleSearch,
  component: lazyPage(() => import('./pages/schedules/schedule.tsx'), 'SchedulePage'),
});

const usage = createRoute({
  ...inOrganization,
  path: '/usage',
  validateSearch: usageSearch,
  component: lazyPage(() => import('./pages/usage/usage.tsx'), 'UsagePage'),
});

const budgets = createRoute({
  ...inOrganization,
  path: '/budgets',
  component: lazyPage(() => import('./pages/budgets/budgets.tsx'), 'BudgetsPage'),
});

const keys = createRoute({
  ...inOrganization,
  path: '/keys',
  component: lazyPage(() => import('./pages/keys/keys.tsx'), 'KeysPage'),
});

const environments = createRoute({
  ...inOrganization,
  path: '/environments',
  component: lazyPage(() => import('./pages/environments/environments.tsx'), 'EnvironmentsPage'),
});

const environment = createRoute({
  ...inOrganization,
  path: '/environments/$name',
  component: lazyPage(() => import('./pages/environments/environment.tsx'), 'EnvironmentPage'),
});

const start = createRoute({
  ...inOrganization,
  path: '/start',
  component: lazyPage(() => import('./pages/start/start.tsx'), 'StartPage'),
});

const people = createRoute({
  ...inOrganization,
  path: '/people',
  component: lazyPage(() => import('./pages/people/people.tsx'), 'PeoplePage'),
});

const organizationSettings = createRoute({
  ...inOrganization,
  path: '/organization',
  component: lazyPage(() => import('./pages/organizations/organization.tsx'), 'OrganizationPage'),
});

const ownAccount = createRoute({
  ...inOrganization,
  path: '/account',
  component: lazyPage(() => import('./pages/account/account.tsx'), 'AccountPage'),
});

const webhooks = createRoute({
  ...inOrganization,
  path: '/webhooks',
  component: lazyPage(() => import('./pages/webhooks/webhooks.tsx'), 'WebhooksPage'),
});

const subscription = createRoute({
  ...inOrganization,
  path: '/webhooks/$environment',
  validateSearch: subscriptionSearch,
  component: lazyPage(() => import('./pages/webhooks/subscription.tsx'), 'SubscriptionPage'),
});

/** The address of a delivery, which the page of its webhook shows in a drawer. */
const delivery = createRoute({
  ...inOrganization,
  path: '/webhooks/$environment/deliveries/$deliveryId',
  beforeLoad: ({ params: { organizationId, environment, deliveryId } }) => {
    throw redirect({
      to: '/$organizationId/webhooks/$environment',
      params: { organizationId, environment },
      search: { tab: 'deliveries', delivery: deliveryId },
      replace: true,
    });
  },
});

const events = createRoute({
  ...inOrganization,
  path: '/events',
  validateSearch: eventsSearch,
  component: lazyPage(() => import('./pages/events/events.tsx'), 'EventsPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    index,
    signIn,
    link,
    share,
    newOrganization,
    system,
    organization.addChildren([
      sessions,
      session,
      compare,
      start,
      overview,
      approvals,
      approval,
      agents,
      newAgent,
      agent,
      agentVersions,
      playground,
      schedules,
      schedule,
      usage,
      budgets,
      environments,
      environment,
      keys,
      people,
      organizationSettings,
      ownAccount,
      webhooks,
      subscription,
      delivery,
      events,
    ]),
  ]),
  basepath: '/console',
  // Pages see only the search parameters that they declare.
  search: { strict: true },
  defaultPreload: 'intent',
  defaultPendingComponent: () => (
    <div className="page">
      <SkeletonRows />
    </div>
  ),
  scrollRestoration: true,
  defaultErrorComponent: FailedPage,
  defaultNotFoundComponent: NotFoundPage,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
