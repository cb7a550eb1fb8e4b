// The environment whose data the pages show. It is in the URL, so that a link shows the same, and the browser remembers the last
// choice in each organization.
import { useNavigate, useSearch } from '@tanstack/react-router';
import { ChevronsUpDown, Layers } from 'lucide-react';
import { useEnvironmentNames } from './environment-names.ts';
import { useOrganization } from './organization.tsx';
import { Button } from '../ui/button.tsx';
import { Menu } from '../ui/menu.tsx';
import { Notice } from '../ui/notice.tsx';

const keyOf = (organizationId: string) => `signalbox.environment.${organizationId}`;

/** The environment of the URL. Undefined for all. */
export function useEnvironment(): string | undefined {
  return useSearch({ from: '/$organizationId' }).environment;
}

/** The choice that the browser remembers. */
export function rememberedEnvironment(organizationId: string): string | undefined {
  return localStorage.getItem(keyOf(organizationId)) ?? undefined;
}

/** Chooses it for this page and those that are opened next. */
export function useChooseEnvironment(): (name: string | undefined) => void {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  return (name) => {
    if (name === undefined) localStorage.removeItem(keyOf(organizationId));
    else localStorage.setItem(keyOf(organizationId), name);
    void navigate({ to: '.', search: (search) => ({ ...search, environment: name }) });
  };
}

export function EnvironmentSwitch() {
  const environment = useEnvironment();
  const names = useEnvironmentNames() ?? [];
  const choose = useChooseEnvironment();
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

/** The chosen one may have been deleted. Every page would look as if nothing happened in it and nothing failed. */
export function NoSuchEnvironment() {
  const environment = useEnvironment();
  const names = useEnvironmentNames();
  const choose = useChooseEnvironment();
  if (environment === undefined || names === undefined || names.includes(environment)) return null;
  return (
    <Notice kind="warn" live title={`There is no environment ${environment}.`}>
      <div>
        <Button small onClick={() => choose(undefined)}>
          Show all environments
        </Button>
      </div>
    </Notice>
  );
}
