import { useApiQuery } from './organization.tsx';

/** The names of all environments, for filters and forms. Undefined while loading. */
export function useEnvironmentNames(): readonly string[] | undefined {
  const { data } = useApiQuery(['environments', 'names'], async (client) => {
    const names: string[] = [];
    for await (const { name } of client.environments.list({ limit: 100 })) names.push(name);
    return names;
  });
  return data;
}

/** The one that a form offers first: the page's (`useEnvironment`), or else none for production, if there is another. */
export function preferredEnvironment(names: readonly string[], ofPage?: string): string {
  if (ofPage !== undefined && names.includes(ofPage)) return ofPage;
  return (
    names.find((name) => name === 'staging') ?? names.find((name) => !/prod|\blive\b/i.test(name)) ?? names[0] ?? ''
  );
}
