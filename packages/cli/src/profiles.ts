// Profiles: the services that `signalbox login` stored, each with its URL and API key, in a file that only its owner can read.
//
// A key is sent only to the URL that it was stored with. Environment variables come first, as a pair: with SIGNALBOX_API_KEY no profile is
// read, unless --profile names one.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { writeOutputFile } from '@signalbox/server/output-file';
import { CommandError, UsageError } from './command.ts';
import type { Terminal } from './terminal.ts';

export interface Profile {
  url: string;
  apiKey: string;
  /** What the key is, for lists: `ci (key_…)`. */
  key: string;
  organization: string;
}

export interface Profiles {
  /** The profile that is used if none is named. */
  current: string | null;
  profiles: ReadonlyMap<string, Profile>;
}

type Env = Terminal['env'];

/** The service on this machine, at the port that `signalbox start` reads from the same variable. */
export function defaultUrl({ SIGNALBOX_PORT }: Env = {}): string {
  // Kubernetes sets a variable of this name to `tcp://…` for a service called signalbox.
  return `http://127.0.0.1:${SIGNALBOX_PORT?.match(/^[1-9]\d{0,4}$/)?.[0] ?? '4500'}`;
}
export const defaultProfile = 'default';

/** Undefined on a machine account without a home directory. */
export function profilesFile({ XDG_CONFIG_HOME, HOME }: Env): string | undefined {
  if (XDG_CONFIG_HOME?.startsWith('/')) return join(XDG_CONFIG_HOME, 'signalbox', 'profiles.json');
  try {
    return join(HOME || homedir(), '.config', 'signalbox', 'profiles.json');
  } catch {
    return undefined;
  }
}

/** Throws `CommandError` if the file can be read by others, or is damaged. */
export function readProfiles(env: Env): Profiles {
  const none: Profiles = { current: null, profiles: new Map() };
  const file = profilesFile(env);
  if (file === undefined) return none;
  let text: string;
  try {
    const { mode } = statSync(file);
    if ((mode & 0o077) !== 0 && process.platform !== 'win32')
      throw new CommandError(`${file} can be read by others. Run: chmod 600 ${file}`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Someone else's home is none.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return none;
    throw error;
  }
  try {
    const stored = JSON.parse(text) as { current: string | null; profiles: Record<string, Profile> };
    return { current: stored.current, profiles: new Map(Object.entries(stored.profiles)) };
  } catch {
    // The parser's message quotes the file, which has keys in it.
    throw new CommandError(`${file} is damaged. Delete it, and run: signalbox login`);
  }
}

/** Replaces the file as a whole, so that it is never half written or readable by others. Returns its path. */
export async function writeProfiles(env: Env, { current, profiles }: Profiles): Promise<string> {
  const file = profilesFile(env);
  if (file === undefined)
    throw new CommandError(
      'There is no home directory to store a profile in. Set XDG_CONFIG_HOME, or SIGNALBOX_API_KEY.',
    );
  const text = JSON.stringify({ current, profiles: Object.fromEntries(profiles) }, null, 2);
  try {
    makeDirectory(dirname(file));
    await writeOutputFile(file, (target) => pipeline([`${text}\n`], target), { mode: 0o600 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `The profile can't be stored in ${file} (${code}). Set XDG_CONFIG_HOME, or SIGNALBOX_API_KEY.`,
    );
  }
  return file;
}

// Not `recursive`: where a directory can't be created although its parent exists, as in /proc, that never ends.
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another login was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

export interface Connection {
  url: string;
  apiKey: string;
  /** The profile that it is from. */
  profile: string | undefined;
}

interface Named {
  url?: string | undefined;
  profile?: string | undefined;
}

/** Throws `UsageError` if there is no key, and `CommandError` if there is no such profile. */
export function connectionOf({ url, profile }: Named, env: Env, command: string, otherwise = ''): Connection {
  const { SIGNALBOX_API_KEY: apiKey, SIGNALBOX_URL, SIGNALBOX_PROFILE } = env;
  if (profile === undefined && apiKey)
    return { apiKey, url: url ?? (SIGNALBOX_URL || defaultUrl(env)), profile: undefined };
  const wrong = (problem: string) => new UsageError(`${command}: ${problem}`, `${command} --help`);
  const { current, profiles } = readProfiles(env);
  const name = profile ?? (SIGNALBOX_PROFILE || current);
  if (!name) throw wrong(`run \`signalbox login\`, or set SIGNALBOX_API_KEY${otherwise}`);
  const found = profiles.get(name);
  if (!found) {
    const names = [...profiles.keys()].join(', ');
    throw new CommandError(
      `There is no profile "${name}"${names ? `; there are ${names}` : ''}. Run: signalbox login --profile ${name}`,
    );
  }
  const given = url ?? (profile === undefined ? SIGNALBOX_URL || undefined : undefined);
  if (given !== undefined && !isSameUrl(given, found.url))
    throw wrong(`the key of the profile "${name}" is only sent to ${found.url}; for ${given} set SIGNALBOX_API_KEY`);
  return { url: found.url, apiKey: found.apiKey, profile: name };
}

function isSameUrl(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href;
}
