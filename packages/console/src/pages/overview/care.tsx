import type { Overview } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useOrganization } from '../../organization.tsx';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { capped } from '../../words.ts';

/** What somebody should look at: receivers of webhooks, keys that end. */
export function Care({ overview }: { overview: Overview }) {
  const { organizationId, may } = useOrganization();
  const { webhooks, keysExpiringSoon: keys } = overview;
  const { blocked, failing, degraded, disabled, waitingDeliveries } = webhooks;
  const toWebhooks = (text: string) => (
    <Link to="/$organizationId/webhooks" params={{ organizationId }}>
      {text}
    </Link>
  );
  const keyWords = `${capped(keys)} ${keys === 1 ? 'API key expires' : 'API keys expire'} within 14 days`;
  const toKeys = may('admin') ? (
    <Link to="/$organizationId/keys" params={{ organizationId }}>
      {keyWords}
    </Link>
  ) : (
    keyWords
  );
  const receivers = (count: number, what: string) =>
    `${capped(count)} ${count === 1 ? 'webhook receiver' : 'webhook receivers'} ${what}`;
  const lines: { tone: Tone; word: string; text: ReactNode; count: number }[] = [
    { tone: 'bad', word: 'disabled', count: disabled, text: toWebhooks(receivers(disabled, 'get nothing any more')) },
    {
      tone: 'bad',
      word: 'blocked',
      count: blocked,
      text: toWebhooks(receivers(blocked, 'that nothing can be sent to')),
    },
    { tone: 'bad', word: 'degraded', count: degraded, text: toWebhooks(receivers(degraded, 'failing for a day')) },
    { tone: 'warn', word: 'failing', count: failing, text: toWebhooks(receivers(failing, 'failing now')) },
    {
      tone: 'warn',
      word: 'waiting',
      count: waitingDeliveries,
      text: toWebhooks(
        `${capped(waitingDeliveries)} ${waitingDeliveries === 1 ? 'delivery waits' : 'deliveries wait'} to be sent again`,
      ),
    },
    { tone: 'warn', word: 'expiring', count: keys, text: toKeys },
  ];
  const needed = lines.filter(({ count }) => count > 0);
  return (
    <section className="card" aria-labelledby="care">
      <h2 id="care">Needs care</h2>
      {needed.length === 0 ? (
        <p className="quiet">Nothing: webhooks arrive, and no API key expires within 14 days.</p>
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
