import type { Account } from '@signalbox/contract/console';
import { useNavigate } from '@tanstack/react-router';
import { ChevronsUpDown } from 'lucide-react';
import { useOrganization } from '../data/organization.tsx';
import { Menu } from '../ui/menu.tsx';

export function OrganizationSwitch({ account }: { account: Account }) {
  const { organizationId, name } = useOrganization();
  const navigate = useNavigate();
  const mayFound = account.organizations.some(({ permission }) => permission === 'admin');
  return (
    <Menu
      className="button bare organization-switch"
      align="start"
      items={[
        ...account.organizations.map((one) => ({
          label: one.name,
          isChecked: one.organizationId === organizationId,
          onSelect: () =>
            void navigate({
              to: '/$organizationId',
              params: { organizationId: one.organizationId },
              // The other organization has its own.
              search: { environment: undefined },
            }),
        })),
        ...(mayFound
          ? [
              {
                group: 'more',
                label: 'New organization',
                onSelect: () => void navigate({ to: '/organizations/new' }),
              },
            ]
          : []),
      ]}
    >
      <Initial name={name} />
      <span className="visually-hidden">Organization:</span>
      <span className="label">{name}</span>
      <ChevronsUpDown className="label" aria-hidden="true" />
    </Menu>
  );
}

/** The first letter of a name, in a square. */
function Initial({ name }: { name: string }) {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return (
    <span className="initial" aria-hidden="true">
      {first?.segment.toLocaleUpperCase()}
    </span>
  );
}
