import { useAsk } from './organization.tsx';

/** The names of all Environments, for filters and forms; undefined until they are there. */
export function useEnvironmentNames(): readonly string[] | undefined {
  const { data } = useAsk(['environments', 'names'], async (client) => {
    const names: string[] = [];
    for await (const { name } of client.environments.list({ limit: 100 })) names.push(name);
    return names;
  });
  return data;
}
