// The environment whose data the pages show. It is in the URL, so that a link shows the same, and the browser remembers the last
// choice in each organization.
import { useNavigate, useSearch } from '@tanstack/react-router';
import { ChevronsUpDown, Layers } from 'lucide-react';
import { useEnvironmentNames } from '../environment-names.ts';
import { useOrganization } from '../organization.tsx';
import { Menu } from '../ui/menu.tsx';

const keyOf = (organizationId: string) => `signalbox.environment.${organizationId}`;

/** The environment of the URL. Undefined for all. */
export function useEnvironment(): string | undefined {
  return useSearch({ from: '/$organizationId' }).environment;
}

/** The choice that the browser remembers. */
export function rememberedEnvironment(organizationId: string): string | undefined {
  return localStorage.getItem(keyOf(organizationId)) ?? undefined;
}

/** Undefined for all. */
export function rememberEnvironment(organizationId: string, name: string | undefined): void {
  if (name === undefined) localStorage.removeItem(keyOf(organizationId));
  else localStorage.setItem(keyOf(organizationId), name);
}

export function EnvironmentSwitch() {
  const { organizationId } = useOrganization();
  const environment = useEnvironment();
  const names = useEnvironmentNames() ?? [];
  const navigate = useNavigate();
  const choose = (name: string | undefined) => {
    rememberEnvironment(organizationId, name);
    void navigate({ to: '.', search: (search) => ({ ...search, environment: name }) });
  };
  // A name from a link may be of an environment that is gone.
  const all = environment === undefined || names.includes(environment) ? names : [environment, ...names];
  return (
    <Menu
      className="button bare environment-switch"
      items={[undefined, ...all].map((name) => ({
        label: name ?? 'All environments',
        isChecked: name === environment,
        onSelect: () => choose(name),
      }))}
    >
      <Layers aria-hidden="true" />
      <span className="visually-hidden">Environment:</span>
      <span className={environment === undefined ? 'name all' : 'name'}>{environment ?? 'All environments'}</span>
      <ChevronsUpDown aria-hidden="true" />
    </Menu>
  );
}
