import { Webhook } from 'lucide-react';
import type { ReactNode } from 'react';
import { EmptyState } from '../../ui/empty-state.tsx';

/** In place of a webhook, or of a list of them. */
export function NoWebhook({ title, action }: { title: string; action: ReactNode }) {
  return (
    <EmptyState
      icon={Webhook}
      title={title}
      action={action}
      docs={{ label: 'How to receive webhooks', href: '/docs#createWebhookSubscription' }}
    >
      Your endpoint receives what happens in sessions as signed requests, which are retried until they arrive.
    </EmptyState>
  );
}
