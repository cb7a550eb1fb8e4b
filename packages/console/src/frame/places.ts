// The pages of the navigation, in groups.
import type { Permission } from '@signalbox/client';
import {
  Bot,
  CalendarClock,
  ChartColumn,
  CircleCheckBig,
  House,
  KeyRound,
  type LucideIcon,
  MessagesSquare,
  ScrollText,
  Server,
  Users,
  Webhook,
} from 'lucide-react';

interface Place {
  to: string;
  label: string;
  icon: LucideIcon;
  /** Hides the page from roles that may not read it. */
  needs?: Permission;
}

const groups = [
  {
    group: 'Run',
    places: [
      { to: '/$organizationId', label: 'Overview', icon: House },
      { to: '/$organizationId/approvals', label: 'Approvals', icon: CircleCheckBig },
      { to: '/$organizationId/sessions', label: 'Sessions', icon: MessagesSquare },
    ],
  },
  {
    group: 'Build',
    places: [
      { to: '/$organizationId/agents', label: 'Agents', icon: Bot },
      { to: '/$organizationId/environments', label: 'Environments', icon: Server },
    ],
  },
  {
    group: 'Operate',
    places: [
      { to: '/$organizationId/webhooks', label: 'Webhooks', icon: Webhook },
      { to: '/$organizationId/schedules', label: 'Schedules', icon: CalendarClock },
      { to: '/$organizationId/usage', label: 'Usage', icon: ChartColumn },
      { to: '/$organizationId/events', label: 'Event log', icon: ScrollText },
    ],
  },
  {
    group: 'Settings',
    places: [
      { to: '/$organizationId/keys', label: 'API keys', icon: KeyRound, needs: 'admin' },
      { to: '/$organizationId/people', label: 'People', icon: Users, needs: 'admin' },
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
