// Where the page is, in the bar above it: the page of the navigation if the open one is below it, then the page's heading.
import type { RouteName } from '@signalbox/contract';
import { Link, useRouterState } from '@tanstack/react-router';
import { ChevronRight } from 'lucide-react';
import { createContext, type ReactNode, useContext, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useOrganization } from './organization.tsx';
import { placeOf } from './places.ts';

interface OpenPage {
  /** Another page of the same title has another id. */
  id: string;
  title: string;
  /** What a program would call instead. */
  operation: RouteName | undefined;
}

const OpenPageContext = createContext<OpenPage | undefined>(undefined);
const SetOpenPageContext = createContext<(page: OpenPage | undefined) => void>(() => {});

/** Receives the title of the page that is open. */
export function CrumbsProvider({ children }: { children: ReactNode }) {
  const [page, setPage] = useState<OpenPage>();
  return (
    <SetOpenPageContext value={setPage}>
      <OpenPageContext value={page}>{children}</OpenPageContext>
    </SetOpenPageContext>
  );
}

/** Undefined while the code of a page is loaded, and if it failed. */
export const useOpenPage = () => useContext(OpenPageContext);

/** Makes `title` the heading while the component is there. */
export function useHeading(title: string, operation: RouteName | undefined): void {
  const id = useId();
  const set = useContext(SetOpenPageContext);
  useEffect(() => set({ id, title, operation }), [id, title, operation, set]);
  useEffect(() => () => set(undefined), [set]);
}

export function Crumbs() {
  const page = useOpenPage();
  const { organizationId } = useOrganization();
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname ?? state.location.pathname });
  const place = useMemo(() => placeOf(path), [path]);
  const isBelow = place !== undefined && page !== undefined && page.title !== place.label;
  return (
    <div className="crumbs">
      {isBelow && (
        <nav aria-label="Breadcrumbs">
          <Link to={place.to} params={{ organizationId }}>
            <span>{place.label}</span>
            <ChevronRight aria-hidden="true" />
          </Link>
        </nav>
      )}
      {page ? <Heading key={page.id} title={page.title} /> : <span>{place?.label}</span>}
    </div>
  );
}

function Heading({ title }: { title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // After navigation, screen readers start at the heading, unless the person goes back to a row (returning.ts).
  useEffect(() => {
    if (!document.activeElement?.matches('.row-link')) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1} title={title}>
      {title}
    </h1>
  );
}
