// The layout around every page of an organization.
import type { Account } from '@signalbox/contract/console';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Outlet, useParams, useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { accountQuery } from '../data/account.ts';
import { CrumbsProvider } from '../data/crumbs.tsx';
import { useApprovalNotifications } from '../data/notifications.ts';
import { OrganizationProvider } from '../data/organization.tsx';
import { OverviewProvider } from '../data/overview.tsx';
import { useIsReachable } from '../lib/reachability.ts';
import { useIsOnline } from '../ui/unavailable.tsx';
import { BottomBar } from './bottom-bar.tsx';
import { NoSuchEnvironment } from './environment.tsx';
import { Everywhere } from './everywhere.tsx';
import { useLive } from './live.ts';
import { Navigation } from './navigation.tsx';
import { OrganizationSwitch } from './organization-switch.tsx';
import { PersonMenu } from './person-menu.tsx';
import { TopBar } from './top-bar.tsx';

export function Shell() {
  const { organizationId } = useParams({ from: '/$organizationId' });
  const { data: account } = useQuery(accountQuery);
  const membership = account?.organizations.find((one) => one.organizationId === organizationId);
  const router = useRouter();
  const isOut = account !== undefined && !membership;
  // Signed out or removed while the page was open: the router decides again where to go.
  useEffect(() => {
    if (isOut) void router.invalidate();
  }, [isOut, router]);
  if (!account?.user || !membership) return null;
  return (
    // The key remounts everything when the organization changes.
    <OrganizationProvider account={account} membership={membership} key={organizationId}>
      <OverviewProvider>
        <CrumbsProvider>
          <Frame account={account} />
        </CrumbsProvider>
      </OverviewProvider>
    </OrganizationProvider>
  );
}

function Frame({ account }: { account: Account }) {
  useLive();
  useApprovalNotifications();
  // On a phone, the navigation is a sheet that the bottom bar opens.
  const [isOpen, setOpen] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: close the sheet after navigation
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && setOpen(false);
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      {isOpen && <button type="button" className="scrim" aria-label="Close the menu" onClick={() => setOpen(false)} />}
      <div className="side" data-open={isOpen}>
        <OrganizationSwitch account={account} />
        <Navigation />
        <PersonMenu />
      </div>
      <div className="content">
        <TopBar />
        <NoSuchEnvironment />
        <Outlet />
      </div>
      <Connection />
      <Everywhere />
      <BottomBar isOpen={isOpen} onMore={() => setOpen(!isOpen)} />
    </div>
  );
}

/** What is at the bottom of a page, such as the message box, is above the notice, whose text wraps on a phone. */
function makeRoom(notice: HTMLElement | null) {
  if (!notice) return;
  const { style } = document.documentElement;
  const observer = new ResizeObserver(() =>
    style.setProperty('--offline', `${notice.getBoundingClientRect().height}px`),
  );
  observer.observe(notice);
  return () => {
    observer.disconnect();
    style.removeProperty('--offline');
  };
}

/** The pages stay, and load what they missed when the connection is back. */
function Connection() {
  const isOnline = useIsOnline();
  const isReachable = useIsReachable();
  useRefreshWhenBack(isOnline && isReachable);
  return (
    <div className="offline" role="status" ref={makeRoom}>
      {!isOnline && 'You are offline. Pages update when the connection is back.'}
      {isOnline && !isReachable && (
        <>
          <span className="spinner" aria-hidden="true" /> The service can’t be reached. Pages update when it is back.
        </>
      )}
    </div>
  );
}

/** Repeats what failed meanwhile. Events that were missed bring the rest up to date. */
function useRefreshWhenBack(isBack: boolean): void {
  const queries = useQueryClient();
  const wasBack = useRef(isBack);
  useEffect(() => {
    if (isBack && !wasBack.current) {
      void queries.refetchQueries({ type: 'active', predicate: ({ state }) => state.error !== null });
    }
    wasBack.current = isBack;
  }, [isBack, queries]);
}
