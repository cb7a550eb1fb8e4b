// The pages at the side: with their names if there is room, else as icons.
import { Link, type LinkComponentProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useGettingStarted } from '../data/getting-started.ts';
import { useOrganization } from '../data/organization.tsx';
import { type Failing, useIsFailing, usePending } from '../data/overview.tsx';
import { places } from '../data/places.ts';
import { capped } from '../lib/text-format.ts';
import { useIsRail } from '../lib/width.ts';
import { Tooltip } from '../ui/tooltip.tsx';
import { ProgressRing } from './progress-ring.tsx';

export function Navigation() {
  const { organizationId, may } = useOrganization();
  const gettingStarted = useGettingStarted();
  return (
    <nav aria-label="Pages">
      {gettingStarted.isShown && (
        <ul>
          <li>
            <Entry to="/$organizationId/start" label="Getting started" icon={<ProgressRing />} />
          </li>
        </ul>
      )}
      {places.map(({ group, places }) => {
        const shown = places.filter(({ needs }) => needs === undefined || may(needs));
        if (shown.length === 0) return null;
        return (
          <section key={group}>
            <h2>{group}</h2>
            <ul>
              {shown.map(({ to, label, icon: Icon }) => (
                <li key={to}>
                  <Entry
                    to={to}
                    params={{ organizationId }}
                    activeOptions={{ exact: to === '/$organizationId' }}
                    label={label}
                    icon={<Icon aria-hidden="true" />}
                  >
                    {label === 'Approvals' && <PendingCount />}
                    {label === 'Webhooks' && <FailingMark of="webhooks" />}
                    {label === 'Schedules' && <FailingMark of="schedules" />}
                  </Entry>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}

function Entry({
  label,
  icon,
  children,
  ...link
}: LinkComponentProps & { label: string; icon: ReactNode; children?: ReactNode }) {
  const isRail = useIsRail();
  const { organizationId } = useOrganization();
  return (
    <Tooltip text={label} side="right" isOff={!isRail}>
      <Link params={{ organizationId }} {...link}>
        {icon}
        <span className="label">{label}</span>
        {children}
      </Link>
    </Tooltip>
  );
}

export function PendingCount() {
  const pending = usePending();
  if (pending === 0) return null;
  return (
    <span className="count">
      {capped(pending)} <span className="visually-hidden">pending</span>
    </span>
  );
}

/** While one of the environment that is shown needs attention. */
function FailingMark({ of }: { of: Failing }) {
  const isFailing = useIsFailing(of);
  if (!isFailing) return null;
  return (
    <span className="count bad">
      <span aria-hidden="true">!</span> <span className="visually-hidden">failing</span>
    </span>
  );
}
