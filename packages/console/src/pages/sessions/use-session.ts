// A session for its page: its fields and its entries.
import type { Session } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { useApiQuery, useList, useOrganization } from '../../data/organization.tsx';
import { type Followed, Following } from './follow.ts';

// Combines changes that arrive together into one read.
const GATHER_NEWS_MS = 150;

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
  const [following] = useState(() => new Following(client, session));
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
