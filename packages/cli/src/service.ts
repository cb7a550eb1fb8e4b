// The connection of a command to the service. It uses the public client, like any other program.
import { type PageRequest, Signalbox } from '@signalbox/client';
import { shown, UsageError } from './usage.ts';

/** Options of every command that calls a service. */
export const serviceOptions = { url: { type: 'string' }, json: { type: 'boolean' } } as const;
export const serviceHelp: readonly (readonly [string, string])[] = [
  ['--json', 'print one JSON object per line, in the format of the API'],
  ['--url URL, SIGNALBOX_URL', 'the service (http://127.0.0.1:4500); set the API key in SIGNALBOX_API_KEY'],
];

/** Throws `UsageError` if the key is missing or the URL is invalid. `otherwise` names an alternative to the key. */
export function serviceAt(url: string | undefined, command: string, otherwise = ''): Signalbox {
  const apiKey = process.env.SIGNALBOX_API_KEY;
  // There is no option for the key, because other users of the machine can read the options of a process.
  if (!apiKey) throw new UsageError(`${command}: set SIGNALBOX_API_KEY${otherwise}`, `${command} --help`);
  try {
    return new Signalbox({ apiKey, baseUrl: url ?? (process.env.SIGNALBOX_URL || undefined) });
  } catch (error) {
    throw new UsageError(`${command}: ${(error as Error).message}`, `${command} --help`);
  }
}

const MAX_PAGE = 100;

/** The first `limit` items of a list, 20 by default. Throws `UsageError` if `limit` is not a positive integer. */
export async function firstOf<T>(
  command: string,
  limit: string | undefined,
  list: (page: { limit: number }) => PageRequest<T>,
): Promise<T[]> {
  const most = Number(limit ?? 20);
  if (!Number.isInteger(most) || most < 1)
    throw new UsageError(`${command}: --limit must be a whole number, 1 or more`, `${command} --help`);
  const found: T[] = [];
  for await (const one of list({ limit: Math.min(most, MAX_PAGE) })) {
    found.push(one);
    if (found.length === most) break;
  }
  return found;
}

/** The names of agents, safe for a terminal; the id of an agent that can't be read. */
export async function agentNames(client: Signalbox, ids: readonly string[]): Promise<(agentId: string) => string> {
  const names = new Map<string, string>();
  const nameOf = async (agentId: string) => {
    const agent = await client.agents.get(agentId).catch(() => undefined);
    if (agent) names.set(agentId, shown(agent.name));
  };
  await Promise.all([...new Set(ids)].map(nameOf));
  return (agentId) => names.get(agentId) ?? agentId;
}

/** Prints lines of JSON for programs, or text for people. An empty result prints "None." to standard error, and nothing with `json`. */
export function print<T>(found: readonly T[], json: boolean | undefined, words: (found: readonly T[]) => string): void {
  if (json) process.stdout.write(found.map((one) => `${JSON.stringify(one)}\n`).join(''));
  else if (found.length === 0) process.stderr.write('None.\n');
  else process.stdout.write(words(found));
}
