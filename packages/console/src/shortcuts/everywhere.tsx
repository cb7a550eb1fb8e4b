// The shortcuts that every page has, and what they open. The palette and the sheet are loaded when they are used first.
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useEffect } from 'react';
import { places } from '../frame/places.ts';
import { useOrganization } from '../organization.tsx';
import { useRecentPlaces } from '../palette/recent.ts';
import { open, useOpened } from './opened.ts';
import { useShortcutKeys, useShortcuts } from './registry.ts';

const Palette = lazy(async () => ({ default: (await import('../palette/palette.tsx')).Palette }));
const Sheet = lazy(async () => ({ default: (await import('./sheet.tsx')).ShortcutSheet }));

export function Everywhere() {
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const opened = useOpened();
  const pages = places
    .flatMap((group) => group.places)
    .filter(({ needs, key }) => key !== undefined && (needs === undefined || may(needs)));
  useShortcuts(
    'Go to',
    pages.map(({ to, label, key }) => ({
      keys: `g ${key}`,
      does: label,
      run: () => void navigate({ to, params: { organizationId } }),
    })),
  );
  useShortcuts('Everywhere', [
    { keys: 'mod+k', does: 'Search and run commands', run: () => open(opened === 'palette' ? undefined : 'palette') },
    { keys: '/', does: 'Search the page', run: focusSearch },
    { keys: '?', does: 'Keyboard shortcuts', run: () => open('sheet') },
  ]);
  useShortcutKeys();
  useRecentPlaces();
  // The organization is left, with what was open in it.
  useEffect(() => () => open(undefined), []);
  return (
    <Suspense>
      {opened === 'palette' && <Palette onClose={() => open(undefined)} />}
      {opened === 'sheet' && <Sheet onClose={() => open(undefined)} />}
    </Suspense>
  );
}

/** A page without a search has the palette. */
function focusSearch(): void {
  const search = document.querySelector<HTMLInputElement>('main :is(input[type="search"], [data-search])');
  if (!search) open('palette');
  search?.focus();
  search?.select();
}
