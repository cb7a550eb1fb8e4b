// Where the page is, in the bar above it: the page of the navigation, then the page's own title if it is below that.
import { Link, useRouterState } from '@tanstack/react-router';
import { ChevronRight } from 'lucide-react';
import { createContext, type ReactNode, useContext, useMemo, useState } from 'react';
import { useOrganization } from '../organization.tsx';
import { placeOf } from './places.ts';

const TitleContext = createContext<string>('');
const SetTitleContext = createContext<(title: string) => void>(() => {});

/** Receives the title of the page that is open. */
export function CrumbsProvider({ children }: { children: ReactNode }) {
  const [title, setTitle] = useState('');
  return (
    <SetTitleContext value={setTitle}>
      <TitleContext value={title}>{children}</TitleContext>
    </SetTitleContext>
  );
}

/** Without effect on a page without the frame. */
export const useSetPageTitle = () => useContext(SetTitleContext);

export function Crumbs() {
  const title = useContext(TitleContext);
  const { organizationId } = useOrganization();
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname ?? state.location.pathname });
  const place = useMemo(() => placeOf(path), [path]);
  const isBelow = place !== undefined && title !== place.label && title !== '';
  return (
    <nav className="crumbs" aria-label="Breadcrumbs">
      {place && isBelow && (
        <>
          <Link to={place.to} params={{ organizationId }}>
            {place.label}
          </Link>
          <ChevronRight aria-hidden="true" />
        </>
      )}
      <span aria-current="page">{isBelow ? title : (place?.label ?? title)}</span>
    </nav>
  );
}
