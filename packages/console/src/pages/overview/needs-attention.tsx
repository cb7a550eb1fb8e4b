import type { Overview } from '@signalbox/client';
import { modelKeyErrors } from '@signalbox/contract';
import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { capped } from '../../text-format.ts';
import { Badge, type Tone } from '../../ui/badge.tsx';

/** Problems that need attention: failing webhooks, expiring keys. */
export function NeedsAttention({ overview }: { overview: Overview }) {
  const { organizationId, may } = useOrganization();
  const { webhooks, keysExpiringSoon: keys } = overview;
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
    { tone: 'warn', word: 'expiring', count: keys, text: toKeys },
  ];
  const needed = lines.filter(({ count }) => count > 0);
  return (
    <section className="card" aria-labelledby="care">
      <h2 id="care">Needs attention</h2>
      {needed.length === 0 ? (
        <p className="quiet">All good. Webhooks are being delivered, and no API key expires in the next 14 days.</p>
      ) : (
        <ul className="care">
          {needed.map(({ tone, word, text }) => (
            <li key={word}>
              <Badge tone={tone}>{word}</Badge> {text}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

// Enough to notice that sessions fail now, and one page of the list.
const NEWEST_SESSIONS = 50;

/** The environments in which one of the newest sessions failed because of its model's key. */
function useEnvironmentsWithoutKey(): string[] {
  const { data = [] } = useApiQuery(
    ['sessions', 'newest'],
    async (client) => (await client.sessions.list({ limit: NEWEST_SESSIONS })).data,
    { everyMs: 30_000 },
  );
  const failed = data.filter(({ error }) => modelKeyErrors.some((code) => code === error?.code));
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
