// A session for its page: its fields and its entries.
import type { Session } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { useApiQuery, useList, useOrganization } from '../../data/organization.tsx';
import { type Followed, Following, type Pacing } from './follow.ts';

// Combines chunks that arrive together into one update.
const GATHER_MS = 40;
const GATHER_NEWS_MS = 150;
// The client has already retried for minutes. A browser that comes back online retries at once.
const PAUSE_MS = 5000;

const pacing: Pacing = {
  gather: (draw) => void setTimeout(draw, GATHER_MS),
  pause: (signal) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        removeEventListener('online', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, PAUSE_MS);
      addEventListener('online', done);
      signal.addEventListener('abort', done);
    }),
};

export function useSession(sessionId: string) {
  return useApiQuery(['sessions', sessionId], (client) => client.sessions.get(sessionId));
}

/** The agent of a session, even if it is archived. */
export function useAgent(agentId: string) {
  return useApiQuery(['agents', agentId], (client) => client.agents.get(agentId));
}

/** The sessions that a session's tools opened. */
export function useChildren(sessionId: string) {
  return useList(['sessions', 'of', sessionId], (client, page) =>
    client.sessions.list({ parentSessionId: sessionId, ...page }),
  );
}

export interface FollowedSession extends Followed {
  /** Reads new messages of the transcript. */
  refresh: () => void;
  /** Reads earlier messages of the transcript. */
  readOlder: () => Promise<void>;
}

/** Follows a session while the component is mounted. Give the component the session's id as its key. */
export function useFollowing(session: Session): FollowedSession {
  const { client, organizationId } = useOrganization();
  const queries = useQueryClient();
  const [following] = useState(() => new Following(client, session, pacing));
  useEffect(() => following.start(), [following]);
  const followed = useSyncExternalStore(following.subscribe, following.snapshot);
  const { sessionId, updatedAt } = session;
  // Some changes in the journal also change the session and its approvals.
  const asking = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (followed.news === 0) return;
    asking.current ??= setTimeout(() => {
      asking.current = undefined;
      void queries.invalidateQueries({ queryKey: [organizationId, 'sessions', sessionId] });
      void queries.invalidateQueries({ queryKey: [organizationId, 'approvals'] });
    }, GATHER_NEWS_MS);
  }, [followed.news, organizationId, sessionId, queries]);
  // Conversely, user messages are not in the journal.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the session has changed
  useEffect(() => void following.refresh(), [following, updatedAt]);
  const refresh = useCallback(() => void following.refresh(), [following]);
  const readOlder = useCallback(() => following.readOlder(), [following]);
  return useMemo(() => ({ ...followed, refresh, readOlder }), [followed, refresh, readOlder]);
}

export const isEnded = ({ status }: Session): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled';

export const isBusy = ({ status }: Session): boolean => status === 'running' || status === 'waiting';
