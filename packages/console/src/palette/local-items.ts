// What the palette finds without asking the service for each letter: pages, actions, and lists that are read once when it opens.

import operations from 'virtual:operations';
import type { Signalbox } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import {
  BookOpen,
  Bot,
  CalendarClock,
  CircleCheckBig,
  History,
  Keyboard,
  KeyRound,
  Layers,
  LogOut,
  Moon,
  Plus,
  Server,
  Sun,
  SunMoon,
  UserRound,
  Webhook,
} from 'lucide-react';
import { useMemo } from 'react';
import { signOut } from '../data/account.ts';
import { useAgents } from '../data/agent-names.ts';
import { useChooseEnvironment } from '../data/environment.ts';
import { useEnvironmentNames } from '../data/environment-names.ts';
import { useApiQuery, useOrganization } from '../data/organization.tsx';
import { places } from '../data/places.ts';
import { recentPlaces } from '../data/recent.ts';
import { toolTitle } from '../lib/text-format.ts';
import { chooseTheme } from '../lib/theme.ts';
import { useTheme } from '../lib/use-theme.ts';
import { inputLine } from '../pages/approvals/groups.ts';
import { open } from '../shortcuts/opened.ts';
import type { PaletteItem } from './item.ts';

// A longer list is searched on its own page.
const MOST = 200;

async function some<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of list) {
    found.push(one);
    if (found.length >= MOST) break;
  }
  return found;
}

/** Read once when the palette opens, and kept current by events (frame/live.ts). */
function useSome<T>(noun: string, list: (client: Signalbox) => AsyncIterable<T>, enabled = true): readonly T[] {
  return useApiQuery([noun, 'palette'], (client) => some(list(client)), { enabled }).data ?? [];
}

/** Opens a page of the organization by its path below it. */
export function useGo() {
  const navigate = useNavigate();
  const { organizationId } = useOrganization();
  return (to: string, search: Record<string, unknown> = {}, hash?: string) =>
    void navigate({
      to: `/${organizationId}${to}`,
      // The environment is kept.
      search: (before: Record<string, unknown>) => ({ environment: before.environment, ...search }),
      ...(hash !== undefined && { hash }),
    } as never);
}

export function useLocalItems(): readonly PaletteItem[] {
  const { organizationId, may, user } = useOrganization();
  const go = useGo();
  const isAdmin = may('admin');
  const { data: agents = [] } = useAgents();
  const environments = useEnvironmentNames() ?? [];
  const approvals = useSome('approvals', (client) => client.approvals.list({ status: 'pending', limit: 100 }));
  const schedules = useSome('schedules', (client) => client.schedules.list({ limit: 100 }));
  const webhooks = useSome('webhooks', (client) => client.webhookSubscriptions.list({ limit: 100 }));
  const keys = useSome('keys', (client) => client.keys.list({ limit: 100 }), isAdmin);
  const actions = useActions();
  return useMemo(() => {
    const nameOf = new Map(agents.map(({ agentId, name }) => [agentId, name]));
    return [
      ...recentPlaces(organizationId).map(({ path, title }) => ({
        id: `recent ${path}`,
        group: 'Recent',
        label: title,
        detail: pageName(path),
        icon: History,
        run: () => go(path),
      })),
      ...places
        .flatMap((group) => group.places)
        .filter(({ needs }) => needs === undefined || may(needs))
        .map(({ to, label, icon, key }) => ({
          id: `page ${to}`,
          group: 'Pages',
          label,
          icon,
          keys: key && `g ${key}`,
          run: () => go(to.slice('/$organizationId'.length)),
        })),
      {
        id: 'page account',
        group: 'Pages',
        label: 'Your account',
        detail: user.email,
        icon: UserRound,
        run: () => go('/account'),
      },
      ...actions,
      ...approvals.map(({ operationId, name, input, agentId }) => ({
        id: operationId,
        group: 'Approvals',
        label: toolTitle(name),
        detail: `${inputLine(input)} · ${nameOf.get(agentId) ?? ''}`,
        words: `${name} ${operationId} approval`,
        icon: CircleCheckBig,
        run: () => go(`/approvals/${operationId}`),
      })),
      ...agents.map(({ agentId, name, archivedAt, description }) => ({
        id: agentId,
        group: 'Agents',
        label: name,
        detail: archivedAt === null ? (description ?? '') : 'archived',
        words: `${agentId} agent`,
        icon: Bot,
        run: () => go(`/agents/${agentId}`),
      })),
      ...schedules.map(({ scheduleId, name, agentId, cron, at, environment }) => ({
        id: scheduleId,
        group: 'Schedules',
        label: name ?? nameOf.get(agentId) ?? scheduleId,
        detail: `${cron ?? at} · ${environment}`,
        words: `${scheduleId} ${nameOf.get(agentId) ?? ''} schedule`,
        icon: CalendarClock,
        run: () => go(`/schedules/${scheduleId}`),
      })),
      ...keys.map(({ keyId, name, permission }) => ({
        id: keyId,
        group: 'API keys',
        label: name,
        detail: permission ?? 'scopes of its own',
        words: `${keyId} key`,
        icon: KeyRound,
        run: () => go('/keys'),
      })),
      ...environments.map((name) => ({
        id: `env ${name}`,
        group: 'Environments',
        label: name,
        detail: 'Secrets and settings',
        words: 'environment',
        icon: Server,
        run: () => go(`/environments/${name}`),
      })),
      ...webhooks.map(({ environment, url }) => ({
        id: `webhook ${environment}`,
        group: 'Webhooks',
        label: `Webhook of ${environment}`,
        detail: url,
        icon: Webhook,
        run: () => go(`/webhooks/${environment}`),
      })),
    ];
  }, [organizationId, may, user, go, agents, environments, approvals, schedules, webhooks, keys, actions]);
}

/** `/agents/agt_…` → `Agents`. */
function pageName(path: string): string {
  const first = `/$organizationId/${path.split('/')[1]}`;
  return places.flatMap((group) => group.places).find(({ to }) => to === first)?.label ?? '';
}

function useActions(): readonly PaletteItem[] {
  const { may } = useOrganization();
  const go = useGo();
  const queries = useQueryClient();
  const environments = useEnvironmentNames() ?? [];
  const chooseEnvironment = useChooseEnvironment();
  const theme = useTheme();
  const group = 'Actions';
  const isDark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  const create = (label: string, to: string, needs: 'write' | 'admin', hash?: string) =>
    may(needs) ? [{ id: label, group, label, words: 'create add', icon: Plus, run: () => go(to, {}, hash) }] : [];
  return [
    ...create('New session', '/sessions', 'write', 'new'),
    ...create('New agent', '/agents/new', 'write'),
    ...create('New schedule', '/schedules', 'write', 'new'),
    ...create('Create key', '/keys', 'admin', 'new'),
    {
      id: 'switch theme',
      group,
      label: isDark ? 'Switch to light' : 'Switch to dark',
      words: 'theme mode appearance',
      icon: isDark ? Sun : Moon,
      run: () => chooseTheme(isDark ? 'light' : 'dark'),
    },
    ...(theme === 'system'
      ? []
      : [
          {
            id: 'system theme',
            group,
            label: 'Use the theme of the system',
            words: 'dark light mode appearance',
            icon: SunMoon,
            run: () => chooseTheme('system'),
          },
        ]),
    ...[undefined, ...environments].map((name) => ({
      id: `switch environment ${name ?? ''}`,
      group,
      label: name === undefined ? 'Show all environments' : `Switch to environment ${name}`,
      icon: Layers,
      run: () => chooseEnvironment(name),
    })),
    {
      id: 'shortcuts',
      group,
      label: 'Keyboard shortcuts',
      icon: Keyboard,
      keys: '?',
      run: () => queueMicrotask(() => open('sheet')),
    },
    {
      id: 'reference',
      group: 'Documentation',
      label: 'API reference',
      words: 'docs documentation help',
      icon: BookOpen,
      run: () => window.open('/docs', '_blank', 'noopener'),
    },
    ...operations.map(([operationId, summary, request]) => ({
      id: `docs ${operationId}`,
      group: 'Documentation',
      label: summary,
      detail: request,
      words: `${operationId} docs reference api help`,
      icon: BookOpen,
      run: () => window.open(`/docs#${operationId}`, '_blank', 'noopener'),
    })),
    {
      id: 'sign out',
      group,
      label: 'Sign out',
      icon: LogOut,
      run: () => void signOut().catch(() => queries.invalidateQueries({ queryKey: ['account'] })),
    },
  ];
}
