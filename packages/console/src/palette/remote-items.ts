// What the palette asks the service for: sessions. A request waits until the user pauses, and is cancelled by the next letter.
import type { Session } from '@signalbox/client';
import { useQuery } from '@tanstack/react-query';
import { MessagesSquare, Search } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useSessionName } from '../data/agent-names.ts';
import { useOrganization } from '../data/organization.tsx';
import { metadataIn, pageOfId } from './ids.ts';
import type { PaletteItem } from './item.ts';
import { useGo } from './local-items.ts';

const PAUSE_MS = 180;
const MOST = 6;

export function useRemoteItems(query: string): { items: readonly PaletteItem[]; isAsking: boolean } {
  const { client, organizationId } = useOrganization();
  const go = useGo();
  const nameOf = useSessionName();
  const text = query.trim();
  const paused = usePaused(text);
  const isId = pageOfId(text) !== undefined;
  const isSearch = paused.length > 1 && !isId;
  const { data = [], isFetching } = useQuery({
    queryKey: [organizationId, 'sessions', 'palette', paused],
    queryFn: async ({ signal }) => {
      const metadata = metadataIn(paused);
      // Words are found some seconds after they were written, an end user at once.
      const filters = metadata ? [{ metadata }] : [{ endUserId: paused }, { q: paused }];
      const pages = await Promise.all(
        filters.map((filter) => client.sessions.list({ ...filter, limit: MOST }, { signal })),
      );
      const all = pages.flatMap(({ data }) => data);
      return [...new Map(all.map((session) => [session.sessionId, session])).values()].slice(0, MOST);
    },
    enabled: isSearch,
    staleTime: 10_000,
  });
  if (isId) return { items: idItem(text, go), isAsking: false };
  if (!isSearch) return { items: [], isAsking: text.length > 1 };
  const items = data.map((session) => ({
    id: session.sessionId,
    group: 'Sessions',
    label: nameOf(session),
    detail: `${session.draft ? 'draft · ' : ''}${session.status} · ${sessionText(session)}`,
    icon: MessagesSquare,
    run: () => go(`/sessions/${session.sessionId}`),
  }));
  return { items, isAsking: isFetching || text !== paused };
}

function idItem(id: string, go: ReturnType<typeof useGo>): PaletteItem[] {
  const { what, to, search } = pageOfId(id)!;
  return [{ id: `go ${id}`, group: 'Go to', label: what, detail: id, icon: Search, run: () => go(to, search) }];
}

function sessionText({ endUser, sessionId }: Session): string {
  return `${endUser ? `${endUser.name ?? endUser.id} · ` : ''}…${sessionId.slice(-6)}`;
}

/** The text once it has not changed for a moment. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}
