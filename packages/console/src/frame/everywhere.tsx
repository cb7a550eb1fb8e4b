// The shortcuts that every page has, and what they open. The palette and the sheet are loaded once the page is idle, so that they open
// at once, also without a network.
import { useNavigate } from '@tanstack/react-router';
import { type ComponentType, useEffect, useState } from 'react';
import { useOrganization } from '../data/organization.tsx';
import { places } from '../data/places.ts';
import { useRecentPlaces } from '../data/recent.ts';
import { open, useOpened } from '../shortcuts/opened.ts';
import { useShortcutKeys, useShortcuts } from '../shortcuts/registry.ts';
import { useToast } from '../ui/toast.tsx';

const load = {
  palette: async () => (await import('../palette/palette.tsx')).Palette,
  sheet: async () => (await import('../shortcuts/sheet.tsx')).ShortcutSheet,
};

const words = { palette: 'search', sheet: 'list of shortcuts' };

type Overlay = ComponentType<{ onClose: () => void }>;

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
  const Overlay = useOverlay();
  return Overlay && <Overlay onClose={() => open(undefined)} />;
}

/** What is open, once it is loaded. */
function useOverlay(): Overlay | undefined {
  const opened = useOpened();
  const toast = useToast();
  const [loaded, setLoaded] = useState<{ readonly [name in keyof typeof load]?: Overlay }>({});
  const isMissing = opened !== undefined && !loaded[opened];
  useEffect(() => {
    if (!isMissing) return;
    const keep = (Overlay: Overlay) => setLoaded((before) => ({ ...before, [opened]: Overlay }));
    load[opened]().then(keep, () => {
      open(undefined);
      toast(`The ${words[opened]} could not be loaded. Check your connection and try again.`);
    });
  }, [isMissing, opened, toast]);
  useEffect(
    () =>
      whenIdle(() => {
        for (const one of Object.values(load)) one().catch(() => {});
      }),
    [],
  );
  return opened && loaded[opened];
}

// For browsers without idle callbacks: by then a page has what it shows.
const AFTER_MS = 2000;

function whenIdle(run: () => void): () => void {
  if (!('requestIdleCallback' in window)) {
    const timer = setTimeout(run, AFTER_MS);
    return () => clearTimeout(timer);
  }
  const callback = requestIdleCallback(run);
  return () => cancelIdleCallback(callback);
}

/** A page without a search has the palette. */
function focusSearch(): void {
  const search = document.querySelector<HTMLInputElement>('main :is(input[type="search"], [data-search])');
  if (!search) open('palette');
  search?.focus();
  search?.select();
}
