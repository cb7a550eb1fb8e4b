// The last pages of single things that were opened: agents, sessions, approvals … For the palette, by organization, in this browser.
import { useRouterState } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useOrganization } from './organization.tsx';

export interface RecentPlace {
  /** Below the organization: `/agents/agt_…`. */
  path: string;
  title: string;
}

const MOST = 8;
// The page sets its title when it has loaded what it shows.
const SETTLED_MS = 1500;
const keyOf = (organizationId: string) => `signalbox.recent.${organizationId}`;

export function recentPlaces(organizationId: string): readonly RecentPlace[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(keyOf(organizationId)) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isPlace) : [];
  } catch {
    return [];
  }
}

function isPlace(value: unknown): value is RecentPlace {
  const { path, title } = (value ?? {}) as Partial<RecentPlace>;
  return typeof path === 'string' && typeof title === 'string' && path.startsWith('/');
}

/** Remembers the page that is open, if it is about a single thing. */
export function useRecentPlaces(): void {
  const { organizationId } = useOrganization();
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => {
    const path = pathname.split(`/${organizationId}`)[1] ?? '';
    if (!/^\/\w+\/\w+/.test(path)) return;
    const timer = setTimeout(() => {
      const title = document.title.replace(/^\([\d,+]+\) /, '').replace(/ · Signalbox$/, '');
      const others = recentPlaces(organizationId).filter((one) => one.path !== path);
      localStorage.setItem(keyOf(organizationId), JSON.stringify([{ path, title }, ...others].slice(0, MOST)));
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [pathname, organizationId]);
}
