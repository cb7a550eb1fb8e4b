// Whether "Getting started" is in the navigation, and how much of it is done. Each person dismisses it for themselves; the browser
// remembers it, as it does the theme.
import type { WebhookSubscription } from '@signalbox/client';
import { useSyncExternalStore } from 'react';
import { useApiQuery, useOrganization } from './organization.tsx';

const keyOf = (userId: string) => `signalbox.getting-started.${userId}`;
const listeners = new Set<() => void>();

export function useGettingStarted(): { isShown: boolean; show(): void; dismiss(): void } {
  const { user, may } = useOrganization();
  const key = keyOf(user.userId);
  const isDismissed = useSyncExternalStore(subscribe, () => localStorage.getItem(key) === 'dismissed');
  return {
    isShown: may('write') && !isDismissed,
    show: () => change(() => localStorage.removeItem(key)),
    dismiss: () => change(() => localStorage.setItem(key, 'dismissed')),
  };
}

/**
 * What has been done in the organization, in these steps or in any other way: a program may have been first. Undefined while it is
 * not known.
 */
export function useProgress({ everyMs }: { everyMs?: number } = {}) {
  const { may } = useOrganization();
  const agents = useApiQuery(
    ['agents', 'any'],
    async (client) => (await client.agents.list({ limit: 1 })).data.length,
    once,
  );
  const approved = useApiQuery(
    ['approvals', 'approved'],
    async (client) => (await client.approvals.list({ status: 'approved', limit: 1 })).data.length,
    once,
  );
  const subscriptions = useApiQuery(
    ['webhooks', 'all'],
    async (client) => (await client.webhookSubscriptions.list({ limit: 100 })).data,
    { everyMs, until: haveDelivered },
  );
  const keys = useApiQuery(
    ['keys', 'any'],
    async (client) => (await client.keys.list({ limit: 1 })).data.length,
    // Only admins can create one.
    { ...once, enabled: may('admin') },
  );
  const hasAgent = isSome(agents.data);
  const hasApproved = isSome(approved.data);
  const hasDelivered = subscriptions.data && haveDelivered(subscriptions.data);
  const hasKey = isSome(keys.data);
  const steps = [hasAgent, hasApproved, hasDelivered, ...(may('admin') ? [hasKey] : [])];
  return {
    hasAgent,
    hasApproved,
    hasDelivered,
    hasKey,
    done: steps.includes(undefined) ? undefined : steps.filter(Boolean).length,
    of: steps.length,
    isComplete: steps.every(Boolean),
  };
}

// Every page shows the progress, and a step that is done stays done.
const once = { until: (count: number) => count > 0 };

function haveDelivered(subscriptions: readonly WebhookSubscription[]): boolean {
  return subscriptions.some(({ lastSuccessAt }) => lastSuccessAt !== null);
}

function isSome(count: number | undefined): boolean | undefined {
  return count === undefined ? undefined : count > 0;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Changed in another tab.
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}

function change(apply: () => void): void {
  apply();
  for (const listener of listeners) listener();
}
