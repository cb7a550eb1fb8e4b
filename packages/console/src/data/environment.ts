// The environment whose data the pages show. It is in the URL, so that a link shows the same, and the browser remembers the last
// choice in each organization.
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useOrganization } from './organization.tsx';

const keyOf = (organizationId: string) => `signalbox.environment.${organizationId}`;

/** The environment of the URL. Undefined for all. */
export function useEnvironment(): string | undefined {
  return useSearch({ from: '/$organizationId' }).environment;
}

/** The choice that the browser remembers. */
export function rememberedEnvironment(organizationId: string): string | undefined {
  return localStorage.getItem(keyOf(organizationId)) ?? undefined;
}

/** Chooses the environment for this page and all that are opened after it. */
export function useChooseEnvironment(): (name: string | undefined) => void {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  return (name) => {
    if (name === undefined) localStorage.removeItem(keyOf(organizationId));
    else localStorage.setItem(keyOf(organizationId), name);
    void navigate({ to: '.', search: (search) => ({ ...search, environment: name }) });
  };
}
