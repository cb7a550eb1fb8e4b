// The pages of the navigation, in groups.
import type { Permission } from '@signalbox/client';
import {
  Bot,
  Building2,
  CalendarClock,
  ChartColumn,
  CircleCheckBig,
  FlaskConical,
  House,
  KeyRound,
  type LucideIcon,
  MessagesSquare,
  ScrollText,
  Server,
  Users,
  Wallet,
  Webhook,
} from 'lucide-react';

interface Place {
  to: string;
  label: string;
  icon: LucideIcon;
  /** `g` and then this letter goes there. */
  key?: string;
  /** Hides the page from roles that may not read it. */
  needs?: Permission;
}

const groups = [
  {
    group: 'Run',
    places: [
      { to: '/$organizationId', label: 'Overview', key: 'o', icon: House },
      { to: '/$organizationId/approvals', label: 'Approvals', key: 'a', icon: CircleCheckBig },
      { to: '/$organizationId/sessions', label: 'Sessions', key: 's', icon: MessagesSquare },
    ],
  },
  {
    group: 'Build',
    places: [
      { to: '/$organizationId/agents', label: 'Agents', key: 'b', icon: Bot },
      { to: '/$organizationId/playground', label: 'Playground', key: 'y', icon: FlaskConical },
      { to: '/$organizationId/environments', label: 'Environments', key: 'n', icon: Server },
    ],
  },
  {
    group: 'Operate',
    places: [
      { to: '/$organizationId/webhooks', label: 'Webhooks', key: 'w', icon: Webhook },
      { to: '/$organizationId/schedules', label: 'Schedules', key: 'c', icon: CalendarClock },
      { to: '/$organizationId/usage', label: 'Usage', key: 'u', icon: ChartColumn },
      { to: '/$organizationId/budgets', label: 'Budgets', key: 'd', icon: Wallet },
      { to: '/$organizationId/events', label: 'Event log', key: 'l', icon: ScrollText },
    ],
  },
  {
    group: 'Settings',
    places: [
      { to: '/$organizationId/keys', label: 'API keys', key: 'k', icon: KeyRound, needs: 'admin' },
      { to: '/$organizationId/people', label: 'People', key: 'p', icon: Users, needs: 'admin' },
      { to: '/$organizationId/organization', label: 'Organization', key: 'r', icon: Building2, needs: 'admin' },
    ],
  },
] as const satisfies readonly { group: string; places: readonly Place[] }[];

type To = (typeof groups)[number]['places'][number]['to'];
export const places: readonly { group: string; places: readonly (Place & { to: To })[] }[] = groups;

/** The place of the page that is open, by the first part of its path below the organization's. */
export function placeOf(path: string): (Place & { to: To }) | undefined {
  const [first = ''] = path.split('/').slice(2);
  return places.flatMap((group) => group.places).find(({ to }) => to === `/$organizationId${first && `/${first}`}`);
}
