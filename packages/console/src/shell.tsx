// The layout around every page of an organization.
import type { Account } from '@signalbox/contract/console';
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useParams, useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { accountQuery, signOut } from './account.ts';
import { useGettingStarted } from './getting-started.ts';
import icon from './icon.svg';
import { useLive } from './live.ts';
import { OrganizationProvider, useOrganization } from './organization.tsx';
import { PendingProvider, usePending } from './pending.tsx';
import { capped } from './text-format.ts';
import { applyTheme, chosenTheme, type Theme } from './theme.ts';
import { Button } from './ui/button.tsx';
import { Select } from './ui/field.tsx';
import { Menu } from './ui/menu.tsx';
import { useToast } from './ui/toast.tsx';
import { useIsOnline } from './unavailable.tsx';

/** The pages of the navigation. `needs` hides pages that the role may not read. */
const places = [
  { to: '/$organizationId', label: 'Overview' },
  { to: '/$organizationId/start', label: 'Getting started' },
  { to: '/$organizationId/approvals', label: 'Approvals' },
  { to: '/$organizationId/sessions', label: 'Sessions' },
  { to: '/$organizationId/agents', label: 'Agents' },
  { to: '/$organizationId/schedules', label: 'Schedules' },
  { to: '/$organizationId/usage', label: 'Usage' },
  { to: '/$organizationId/webhooks', label: 'Webhooks' },
  { to: '/$organizationId/environments', label: 'Environments' },
  { to: '/$organizationId/keys', label: 'API keys', needs: 'admin' },
  { to: '/$organizationId/events', label: 'Event log' },
  { to: '/$organizationId/people', label: 'People', needs: 'admin' },
] as const satisfies readonly {
  to: string;
  label: string;
  needs?: 'write' | 'admin';
}[];

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
      <PendingProvider>
        <Frame account={account} />
      </PendingProvider>
    </OrganizationProvider>
  );
}

function Frame({ account }: { account: Account }) {
  useLive();
  const [open, setOpen] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: close the menu after navigation
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
      <div className="topbar">
        <Button look="bare" aria-expanded={open} onClick={() => setOpen(!open)}>
          Menu
        </Button>
        <PendingLink />
        <Brand />
      </div>
      {open && <button type="button" className="scrim" aria-label="Close the menu" onClick={() => setOpen(false)} />}
      <div className="side" data-open={open}>
        <Brand />
        <OrganizationSwitch account={account} />
        <Navigation />
        <div className="foot">
          <a className="reference" href="/docs" target="_blank" rel="noopener">
            API reference
          </a>
          <PersonMenu account={account} />
        </div>
      </div>
      <Offline />
      <Outlet />
    </div>
  );
}

/** The pages stay, and load what they missed when the connection is back. */
function Offline() {
  const isOnline = useIsOnline();
  return (
    <div className="offline" role="status">
      {!isOnline && 'You are offline. This page updates when the connection is back.'}
    </div>
  );
}

function Brand() {
  const { organizationId } = useOrganization();
  return (
    <Link className="brand" to="/$organizationId" params={{ organizationId }}>
      <img src={icon} alt="" /> Signalbox
    </Link>
  );
}

/** For phones, where the navigation is behind a button. */
function PendingLink() {
  const { organizationId } = useOrganization();
  const pending = usePending();
  if (pending === 0) return null;
  return (
    <Link className="pending" to="/$organizationId/approvals" params={{ organizationId }}>
      <span className="count">{capped(pending)}</span> pending
    </Link>
  );
}

function Navigation() {
  const { organizationId, may } = useOrganization();
  const pending = usePending();
  const { isShown } = useGettingStarted();
  return (
    <nav aria-label="Pages">
      <ul>
        {places
          .filter(({ label }) => label !== 'Getting started' || isShown)
          .filter((place) => !('needs' in place) || may(place.needs as 'write' | 'admin'))
          .map(({ to, label }) => (
            <li key={to}>
              <Link to={to} params={{ organizationId }} activeOptions={{ exact: to === '/$organizationId' }}>
                {label}
                {label === 'Approvals' && pending > 0 && (
                  <span className="count">
                    {capped(pending)} <span className="visually-hidden">pending</span>
                  </span>
                )}
              </Link>
            </li>
          ))}
      </ul>
    </nav>
  );
}

function OrganizationSwitch({ account }: { account: Account }) {
  const { organizationId, name } = useOrganization();
  const navigate = useNavigate();
  if (account.organizations.length < 2) return <div className="quiet small organization">{name}</div>;
  return (
    <Select
      label="Organization"
      quiet
      value={organizationId}
      onChange={(event) =>
        void navigate({ to: '/$organizationId', params: { organizationId: event.currentTarget.value } })
      }
      options={account.organizations.map((one) => ({ value: one.organizationId, label: one.name }))}
    />
  );
}

const themes: Record<Theme, string> = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };

function PersonMenu({ account }: { account: Account }) {
  const { user, role, organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const [theme, setTheme] = useState(chosenTheme);
  const gettingStarted = useGettingStarted();
  const mayFound = account.organizations.some(({ permission }) => permission === 'admin');
  const others = (Object.keys(themes) as Theme[]).filter((one) => one !== theme);
  return (
    <Menu
      label={`${user.name}, ${role}`}
      items={[
        ...others.map((one) => ({
          label: themes[one],
          onSelect: () => {
            applyTheme(one);
            setTheme(one);
          },
        })),
        {
          label: 'Your account',
          onSelect: () => void navigate({ to: '/$organizationId/account', params: { organizationId } }),
        },
        ...(may('write')
          ? [
              {
                label: 'Getting started',
                onSelect: () => {
                  gettingStarted.show();
                  void navigate({ to: '/$organizationId/start', params: { organizationId } });
                },
              },
            ]
          : []),
        ...(mayFound
          ? [{ label: 'New organization', onSelect: () => void navigate({ to: '/organizations/new' }) }]
          : []),
        {
          label: 'Sign out',
          onSelect: () =>
            void signOut().catch(() =>
              toast('You are still signed in because the service did not respond. Try again.'),
            ),
        },
      ]}
    >
      <span className="person">
        {user.name} <span className="quiet small">{role}</span>
      </span>
    </Menu>
  );
}
