import type { SessionActions, SessionSnapshot } from '@signalbox/client/conversation';
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { keyOf, sharedStore, type UseSessionOptions } from './registry.ts';

export type UseSession = SessionSnapshot & SessionActions;

/**
 * A session as it is: its messages while they are streamed, its status, its approvals, and what the user can do.
 *
 *     const { messages, send, isBusy } = useSession({ baseUrl, token, agentId, environment: 'production' });
 *
 * Components with the same session share one stream. It resumes where it was after a reload, a lost network, an expired token and a
 * restart of the service.
 */
export function useSession(options: UseSessionOptions): UseSession {
  const key = keyOf(options);
  const [held, hold] = useState(() => ({ key, shared: sharedStore(options) }));
  let current = held;
  if (held.key !== key) {
    current = { key, shared: sharedStore(options) };
    hold(current);
  }
  const { shared } = current;
  const { store } = shared;
  const { token } = options;
  useEffect(() => {
    shared.token = token;
  }, [shared, token]);
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getInitialSnapshot);
  return useMemo(() => {
    const { send, stop, decide, toolResult, retry, loadEarlier } = store;
    return { ...snapshot, send, stop, decide, toolResult, retry, loadEarlier };
  }, [snapshot, store]);
}
