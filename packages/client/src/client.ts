/** The client: every operation of the API, grouped by resource. */
import { Agents } from './resources/agents.ts';
import { OrganizationAnalytics } from './resources/analytics.ts';
import { Approvals } from './resources/approvals.ts';
import { Budgets } from './resources/budgets.ts';
import { Destinations } from './resources/destinations.ts';
import { EndUsers } from './resources/end-users.ts';
import { Environments } from './resources/environments.ts';
import { Events } from './resources/events.ts';
import { Files } from './resources/files.ts';
import { Invitations } from './resources/invitations.ts';
import { Keys } from './resources/keys.ts';
import { Members } from './resources/members.ts';
import { OwnOrganization } from './resources/organization.ts';
import { Schedules } from './resources/schedules.ts';
import { SessionTokens } from './resources/session-tokens.ts';
import { Sessions } from './resources/sessions.ts';
import { OrganizationUsage } from './resources/usage.ts';
import { WebhookSubscriptions } from './resources/webhook-subscriptions.ts';
import { Workers } from './resources/workers.ts';
import { type ClientOptions, type Query, type RequestOptions, Transport } from './transport.ts';
import type { Me, Overview } from './types.generated.ts';

/**
 * A client for one Signalbox service with one API key; in the console, with the sign-in of the user.
 *
 *     const client = new Signalbox(); // SIGNALBOX_API_KEY and SIGNALBOX_URL, or { apiKey, baseUrl }
 *     const session = await client.sessions.open({ agentId, environment: 'production', input: 'Hello' });
 *     for await (const { chunks } of client.sessions.stream(session.sessionId)) …
 *
 * Rules for every method:
 *
 * - Arguments: identifiers first, then an object with the other parameters, then {@link RequestOptions}.
 * - A result with one field is unwrapped (`{ apiKey }` → the key); one with several fields is returned as it is.
 * - A failed call rejects with a {@link SignalboxError}, which has `status`, `code` and `requestId`.
 * - Calls that can be repeated safely are retried after a temporary failure: all but the `update` methods.
 */
export class Signalbox {
  readonly keys: Keys;
  readonly agents: Agents;
  readonly endUsers: EndUsers;
  readonly environments: Environments;
  readonly sessions: Sessions;
  readonly sessionTokens: SessionTokens;
  readonly files: Files;
  readonly approvals: Approvals;
  readonly schedules: Schedules;
  readonly workers: Workers;
  readonly webhookSubscriptions: WebhookSubscriptions;
  readonly destinations: Destinations;
  readonly members: Members;
  readonly invitations: Invitations;
  readonly organization: OwnOrganization;
  readonly usage: OrganizationUsage;
  readonly analytics: OrganizationAnalytics;
  readonly budgets: Budgets;
  readonly events: Events;
  readonly #transport: Transport;

  /** @throws TypeError if there is no API key, neither in `options` nor in the environment variable `SIGNALBOX_API_KEY` */
  constructor(options: ClientOptions = {}) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.keys = new Keys(transport);
    this.agents = new Agents(transport);
    this.endUsers = new EndUsers(transport);
    this.environments = new Environments(transport);
    this.sessions = new Sessions(transport);
    this.sessionTokens = new SessionTokens(transport);
    this.files = new Files(transport);
    this.approvals = new Approvals(transport);
    this.schedules = new Schedules(transport);
    this.workers = new Workers(transport);
    this.webhookSubscriptions = new WebhookSubscriptions(transport);
    this.destinations = new Destinations(transport);
    this.members = new Members(transport);
    this.invitations = new Invitations(transport);
    this.organization = new OwnOrganization(transport);
    this.usage = new OrganizationUsage(transport);
    this.budgets = new Budgets(transport);
    this.analytics = new OrganizationAnalytics(transport);
    this.events = new Events(transport);
  }

  /** The caller: the organization, the key or user, and the permission. Any permission. */
  me(options?: RequestOptions): Promise<Me> {
    return this.#transport.call('getMe', {}, options);
  }

  /**
   * Counts of what is happening now, in the organization or in one environment. Permission `read`. Counting stops at 10,000,
   * which means that many or more.
   */
  async overview(params: Query<'getOverview'> = {}, options?: RequestOptions): Promise<Overview> {
    return (await this.#transport.call('getOverview', { query: params }, options)).overview;
  }
}
