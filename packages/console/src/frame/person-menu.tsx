import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { signOut } from '../data/account.ts';
import { useGettingStarted } from '../data/getting-started.ts';
import { useOrganization } from '../data/organization.tsx';
import { chooseTheme, type Theme } from '../lib/theme.ts';
import { useTheme } from '../lib/use-theme.ts';
import { Avatar } from '../ui/avatar.tsx';
import { Menu } from '../ui/menu.tsx';
import { useToast } from '../ui/toast.tsx';
import { DisplayDialog } from './display-dialog.tsx';

const themes: Record<Theme, string> = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };

export function PersonMenu() {
  const { user, role, organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const theme = useTheme();
  const [isDisplay, setDisplay] = useState(false);
  const gettingStarted = useGettingStarted();
  return (
    <>
      <Menu
        className="button bare person"
        align="start"
        items={[
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
          ...(Object.keys(themes) as Theme[]).map((one) => ({
            group: 'theme',
            label: themes[one],
            isChecked: one === theme,
            onSelect: () => chooseTheme(one),
          })),
          { group: 'theme', label: 'Display…', onSelect: () => setDisplay(true) },
          {
            group: 'sign out',
            label: 'Sign out',
            onSelect: () =>
              void signOut().catch(() =>
                toast('You are still signed in because the service did not respond. Try again.'),
              ),
          },
        ]}
      >
        <Avatar name={user.name} />
        <span className="label">
          {user.name} <span className="quiet small">{role}</span>
        </span>
      </Menu>
      {isDisplay && <DisplayDialog onClose={() => setDisplay(false)} />}
    </>
  );
}
