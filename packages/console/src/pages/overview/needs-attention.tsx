import type { AnalyticsGroup, Overview } from '@signalbox/client';
import { modelKeyErrors } from '@signalbox/contract';
import { Link } from '@tanstack/react-router';
import { CircleCheck } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import { useAgentName } from '../../data/agent-names.ts';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { capped, counted } from '../../lib/text-format.ts';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { Bone } from '../../ui/skeleton.tsx';
import { PlainText } from '../../ui/text.tsx';
import { BudgetLine, useBudgetsToWatch } from './budget-attention.tsx';
import { EndingLine, useEndingModels } from './ending-models.tsx';

/**
 * Problems that need attention: failing webhooks, schedules and agents, models that end, budgets near their limit, expiring keys. `groups` is undefined while it is
 * not known which agents fail, and null if that could not be read.
 */
export function NeedsAttention({
  overview,
  groups,
}: {
  overview: Overview;
  groups: readonly AnalyticsGroup[] | null | undefined;
}) {
  const { organizationId, may } = useOrganization();
  const { webhooks, schedules, keysExpiringSoon: keys } = overview;
  const { blocked, failing, degraded, disabled, waitingDeliveries } = webhooks;
  const toWebhooks = (text: string) => (
    <Link to="/$organizationId/webhooks" params={{ organizationId }}>
      {text}
    </Link>
  );
  const keyWords = `${capped(keys)} ${keys === 1 ? 'API key expires' : 'API keys expire'} in the next 14 days`;
  const toKeys = may('admin') ? (
    <Link to="/$organizationId/keys" params={{ organizationId }}>
      {keyWords}
    </Link>
  ) : (
    keyWords
  );
  const receivers = (count: number, what: string) =>
    `${capped(count)} ${count === 1 ? 'webhook subscription' : 'webhook subscriptions'} ${what}`;
  const withoutKey = useEnvironmentsWithoutKey();
  const lines: { tone: Tone; word: string; text: ReactNode; count: number }[] = [
    {
      tone: 'bad',
      word: 'model key',
      count: withoutKey.length,
      text: <ModelKeys environments={withoutKey} />,
    },
    { tone: 'bad', word: 'disabled', count: disabled, text: toWebhooks(receivers(disabled, 'no longer sending')) },
    {
      tone: 'bad',
      word: 'blocked',
      count: blocked,
      text: toWebhooks(receivers(blocked, 'that cannot send')),
    },
    {
      tone: 'bad',
      word: 'degraded',
      count: degraded,
      text: toWebhooks(receivers(degraded, 'failing for more than a day')),
    },
    { tone: 'warn', word: 'failing', count: failing, text: toWebhooks(receivers(failing, 'failing now')) },
    {
      tone: 'warn',
      word: 'waiting',
      count: waitingDeliveries,
      text: toWebhooks(
        `${capped(waitingDeliveries)} ${waitingDeliveries === 1 ? 'delivery is' : 'deliveries are'} waiting for a retry`,
      ),
    },
    {
      tone: 'bad',
      word: 'schedule',
      count: schedules.failing,
      text: (
        <Link to="/$organizationId/schedules" params={{ organizationId }}>
          {capped(schedules.failing)}{' '}
          {schedules.failing === 1 ? 'schedule whose last run' : 'schedules whose last runs'} failed
        </Link>
      ),
    },
    { tone: 'warn', word: 'expiring', count: keys, text: toKeys },
  ];
  const needed = lines.filter(({ count }) => count > 0);
  const failingAgents = (groups ?? [])
    .filter(({ group, turns }) => group !== '' && turns.failed > 0)
    // The line about the key says how to fix it.
    .filter(({ failures }) => withoutKey.length === 0 || failures.some(({ code }) => !isOfKey(code)))
    .slice(0, MOST_AGENTS);
  const budgets = useBudgetsToWatch();
  const endings = useEndingModels();
  const isCalm = needed.length + failingAgents.length + (budgets?.length ?? 0) + (endings?.length ?? 0) === 0;
  const isKnown = groups !== undefined && budgets !== undefined && endings !== undefined;
  const sends = useSendsWebhooks();
  return (
    <section className="card" aria-labelledby="care">
      <h2 id="care">Needs attention</h2>
      {isCalm && !isKnown && <Bone />}
      {isCalm && isKnown && (
        <p className="calm quiet">
          <CircleCheck aria-hidden="true" />
          {groups !== null && budgets !== null && endings !== null && 'All good. '}
          {sends ? 'Webhooks are being delivered, and no' : 'No'} API key expires in the next 14 days.
        </p>
      )}
      {!isCalm && (
        <ul className="care">
          {budgets?.map((budget) => (
            <li key={`budget ${budget.name} ${budget.when}`}>
              <BudgetLine budget={budget} />
            </li>
          ))}
          {endings?.map((ending) => (
            <li key={`ending ${ending.model}`}>
              <EndingLine ending={ending} />
            </li>
          ))}
          {failingAgents.map((agent) => (
            <li key={agent.group}>
              <FailingAgent agent={agent} />
            </li>
          ))}
          {needed.map(({ tone, word, text }) => (
            <li key={word}>
              <Badge tone={tone}>{word}</Badge>
              <span>{text}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

// Agents with the most failed turns; the others are in the table below.
const MOST_AGENTS = 3;
/** Whether there is a webhook that is neither paused nor disabled. */
function useSendsWebhooks(): boolean {
  const environment = useEnvironment();
  const { data = [] } = useApiQuery(
    ['webhooks', 'all'],
    async (client) => (await client.webhookSubscriptions.list({ limit: 100 })).data,
  );
  return data.some((one) => one.status === 'enabled' && [undefined, one.environment].includes(environment));
}

/** How many turns failed and the most frequent reason, with a link to the last session. */
function FailingAgent({ agent: { group, turns, failures } }: { agent: AnalyticsGroup }) {
  const { organizationId } = useOrganization();
  const nameOf = useAgentName();
  const [first] = failures;
  return (
    <>
      <Badge tone="bad">failed</Badge>
      <span>
        <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId: group }}>
          <PlainText text={nameOf(group)} />
        </Link>
        : {counted(turns.failed, 'turn')} failed
        {first && (
          <>
            , {failures.length === 1 ? '' : 'most '}with <code>{first.code}</code>
          </>
        )}
      </span>
      {first?.sessionId && (
        <Link
          to="/$organizationId/sessions/$sessionId"
          params={{ organizationId, sessionId: first.sessionId }}
          className="small aside"
        >
          Last session
        </Link>
      )}
    </>
  );
}

// Enough to notice that sessions fail now, and one page of the list.
const NEWEST_SESSIONS = 50;

function isOfKey(code: string): boolean {
  return modelKeyErrors.some((one) => one === code);
}

/** The environments in which one of the newest sessions failed because of its model's key. */
function useEnvironmentsWithoutKey(): string[] {
  const environment = useEnvironment();
  const { data = [] } = useApiQuery(
    ['sessions', 'newest', environment],
    async (client) => {
      const { data } = await client.sessions.list({
        limit: NEWEST_SESSIONS,
        draft: false,
        ...(environment !== undefined && { environment }),
      });
      return data;
    },
    { everyMs: 30_000 },
  );
  const failed = data.filter(({ error }) => error !== null && isOfKey(error.code));
  return [...new Set(failed.map(({ environment }) => environment))];
}

function ModelKeys({ environments }: { environments: readonly string[] }) {
  const { organizationId, may } = useOrganization();
  return (
    <>
      Sessions fail because a model’s key is missing or rejected in{' '}
      {environments.map((environment, index) => (
        <Fragment key={environment}>
          {index > 0 && ', '}
          {may('admin') ? (
            <Link to="/$organizationId/environments/$name" params={{ organizationId, name: environment }}>
              {environment}
            </Link>
          ) : (
            environment
          )}
        </Fragment>
      ))}
    </>
  );
}
