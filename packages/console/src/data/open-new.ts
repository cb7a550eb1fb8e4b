import { useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';

/** Opens the form of a page for something new, when the palette leads there for it (`#new`). */
export function useOpenNew(open: () => void, isAllowed: boolean): void {
  const { hash } = useLocation();
  const navigate = useNavigate();
  const isAsked = hash === 'new' && isAllowed;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each time that the palette leads here
  useEffect(() => {
    if (!isAsked) return;
    open();
    void navigate({ to: '.', search: (search) => search, replace: true });
  }, [isAsked]);
}
