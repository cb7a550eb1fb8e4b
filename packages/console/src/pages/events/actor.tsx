import type { Event } from '@signalbox/client';
import { Bot, Cog, KeyRound, type LucideIcon, UserRound } from 'lucide-react';
import { Avatar } from '../../ui/avatar.tsx';
import { PlainText } from '../../ui/text.tsx';

const icons: Partial<Record<Event['actor']['type'], LucideIcon>> = {
  api_key: KeyRound,
  agent: Bot,
  end_user: UserRound,
  system: Cog,
};
const kinds: Record<Event['actor']['type'], string> = {
  api_key: 'API key',
  agent: 'Agent',
  end_user: 'End user',
  system: 'Service',
  user: 'Person',
};

/** Who did it: the name, with the kind of actor as an icon. */
export function Actor({ actor: { type, name } }: { actor: Event['actor'] }) {
  const Icon = icons[type];
  return (
    <span className="actor" title={`${kinds[type] ?? type}: ${name}`}>
      {Icon ? (
        <span className="avatar">
          <Icon aria-hidden="true" />
        </span>
      ) : (
        <Avatar name={name} />
      )}
      <span className="name">
        <PlainText text={name} />
      </span>
    </span>
  );
}
