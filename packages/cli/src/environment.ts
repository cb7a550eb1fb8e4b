// The environment of a command: `--environment`, or the only one that the key can use.
import { PermissionError, type Signalbox } from '@signalbox/client';
import { type Input, UsageError } from './command.ts';

export const environmentOption = {
  type: 'string',
  value: 'NAME',
  about: 'the environment; without it, the only one that the key can use',
} as const;

type WithEnvironment = Pick<Input, 'command'> & { values: { environment?: string | undefined } };

/** Throws `UsageError`, which names the environments if there are several. */
export async function environmentFor({ values, command }: WithEnvironment, client: Signalbox): Promise<string> {
  if (values.environment !== undefined) return values.environment;
  const names = await usableEnvironments(client);
  if (names.length === 1) return names[0]!;
  const which = names.length === 0 ? '' : `: ${names.join(' or ')}`;
  throw new UsageError(`${command}: needs --environment NAME${which}`, `${command} --help`);
}

/** Empty if the key must not list them. */
async function usableEnvironments(client: Signalbox): Promise<readonly string[]> {
  const { apiKey } = await client.me();
  if (apiKey?.environments) return apiKey.environments;
  try {
    const { data } = await client.environments.list({ limit: 10 });
    return data.map(({ name }) => name);
  } catch (error) {
    if (error instanceof PermissionError) return [];
    throw error;
  }
}
