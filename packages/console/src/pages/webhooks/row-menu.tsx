import type { WebhookSubscription } from '@signalbox/client';
import { inList, useApiMutation } from '../../data/organization.tsx';
import { Menu } from '../../ui/menu.tsx';
import { errorText } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';
import { outcomeOf } from './reasons.ts';

/** What can be done with a webhook from the list. */
export function WebhookRowMenu({ subscription: { environment, status } }: { subscription: WebhookSubscription }) {
  const toast = useToast();
  const onError = (error: unknown) => toast(errorText(error));
  const test = useApiMutation((client, _: undefined) => client.webhookSubscriptions.test(environment), ['webhooks']);
  const change = useStatusChange(environment);
  const next = status === 'enabled' ? 'paused' : 'enabled';
  return (
    <Menu
      label={`Actions for the webhook of ${environment}`}
      items={[
        {
          label: 'Send test delivery',
          onSelect: () => test.mutate(undefined, { onSuccess: (attempt) => toast(outcomeOf(attempt)), onError }),
        },
        {
          label: next === 'paused' ? 'Pause' : 'Enable',
          onSelect: () => change.mutate(next, { onSuccess: () => toast(changedText[next]), onError }),
        },
      ]}
    />
  );
}

export type SettableStatus = 'enabled' | 'paused';

export const changedText: Record<SettableStatus, string> = {
  enabled: 'Enabled. Queued deliveries are being sent.',
  paused: 'Paused. Deliveries are queued.',
};

/** Pauses or enables. The list shows the new status at once. */
export function useStatusChange(environment: string) {
  return useApiMutation(
    (client, status: SettableStatus) => client.webhookSubscriptions.update(environment, { status }),
    ['webhooks', 'overview'],
    {
      key: ['webhooks', 'subscriptions'],
      apply: inList((one: WebhookSubscription, status) => (one.environment === environment ? { ...one, status } : one)),
    },
  );
}
