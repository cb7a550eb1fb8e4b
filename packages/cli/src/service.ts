// The service that a command speaks to, by the client, like every program of people’s own.
import { type PageRequest, Signalbox } from '@signalbox/client';
import { shown, UsageError } from './usage.ts';

/** Taken by each command that asks a service. */
export const serviceOptions = { url: { type: 'string' }, json: { type: 'boolean' } } as const;
export const serviceHelp: readonly (readonly [string, string])[] = [
  ['--json', 'prints each as a line of JSON, as the interface has it'],
  ['--url URL, SIGNALBOX_URL', 'the service (http://127.0.0.1:4500); its key stands in SIGNALBOX_API_KEY'],
];

/** Throws `UsageError` where the key or a sensible address is missing; `otherwise` says what else would do. */
export function serviceAt(url: string | undefined, command: string, otherwise = ''): Signalbox {
  const apiKey = process.env.SIGNALBOX_API_KEY;
  // It has no option: others on this machine can read those.
  if (!apiKey) throw new UsageError(`${command}: set SIGNALBOX_API_KEY${otherwise}`, `${command} --help`);
  try {
    return new Signalbox({ apiKey, baseUrl: url ?? (process.env.SIGNALBOX_URL || undefined) });
  } catch (error) {
    throw new UsageError(`${command}: ${(error as Error).message}`, `${command} --help`);
  }
}

const MAX_PAGE = 100;

/** The first so many of a list; 20 where nothing is said. */
export async function firstOf<T>(
  command: string,
  limit: string | undefined,
  list: (page: { limit: number }) => PageRequest<T>,
): Promise<T[]> {
  const most = Number(limit ?? 20);
  if (!Number.isInteger(most) || most < 1)
    throw new UsageError(`${command}: --limit is a number, 1 or more`, `${command} --help`);
  const found: T[] = [];
  for await (const one of list({ limit: Math.min(most, MAX_PAGE) })) {
    found.push(one);
    if (found.length === most) break;
  }
  return found;
}

/** The names of Agents, as a terminal can show them; of one that is not to be had, its id. */
export async function agentNames(client: Signalbox, ids: readonly string[]): Promise<(agentId: string) => string> {
  const names = new Map<string, string>();
  const nameOf = async (agentId: string) => {
    const agent = await client.agents.get(agentId).catch(() => undefined);
    if (agent) names.set(agentId, shown(agent.name));
  };
  await Promise.all([...new Set(ids)].map(nameOf));
  return (agentId) => names.get(agentId) ?? agentId;
}

/** Lines of JSON for programs, or of words for people; where there is nothing, that is said to people alone. */
export function print<T>(found: readonly T[], json: boolean | undefined, words: (found: readonly T[]) => string): void {
  if (json) process.stdout.write(found.map((one) => `${JSON.stringify(one)}\n`).join(''));
  else if (found.length === 0) process.stderr.write('None.\n');
  else process.stdout.write(words(found));
}
