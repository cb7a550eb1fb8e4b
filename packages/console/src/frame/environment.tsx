// Chooses the environment for all pages.
import { ChevronsUpDown, Layers } from 'lucide-react';
import { useChooseEnvironment, useEnvironment } from '../data/environment.ts';
import { useEnvironmentNames } from '../data/environment-names.ts';
import { Button } from '../ui/button.tsx';
import { Menu } from '../ui/menu.tsx';
import { Notice } from '../ui/notice.tsx';

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
