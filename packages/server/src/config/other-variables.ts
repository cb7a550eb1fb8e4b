// Variables that begin like the settings of the service and are none. A misspelt one would be ignored, with what it was to protect.
import { nearest } from '@signalbox/contract/nearest';
import type { Env } from './setting.ts';

const PREFIX = 'SIGNALBOX_';
/** Variables of programs, of the command line and of compose.yaml, which can have the same environment. */
const OTHERS = new Set(['URL', 'API_KEY', 'PROFILE', 'SIGNING_SECRET', 'ADDRESS'].map((name) => `${PREFIX}${name}`));
/** What Kubernetes and Docker set for a service called signalbox, or signalbox-something. */
const SERVICE_LINK = /^SIGNALBOX_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)$/;
/** More differ by chance, such as the name of a model that a program keeps next to the settings. */
const MAX_EDITS = 2;

export interface OtherVariable {
  variable: string;
  /** The setting that was probably meant; undefined: the variable may be another program's. */
  meant: string | undefined;
}

/** Without variables that are not set, or that are known to be of something else. `known`: the variables of all settings. */
export function otherVariables(env: Env, known: readonly string[]): OtherVariable[] {
  const settings = new Set(known.flatMap((variable) => [variable, `${variable}_FILE`]));
  const unprefixed = new Map([...settings].map((variable) => [variable.replace(PREFIX, ''), variable]));
  return Object.keys(env)
    .filter((variable) => variable.startsWith(PREFIX) && env[variable] !== '' && !settings.has(variable))
    .filter((variable) => !OTHERS.has(variable) && !isServiceLink(variable, env[variable] ?? ''))
    .map((variable) => {
      const near = nearest(variable.replace(PREFIX, ''), [...unprefixed.keys()], MAX_EDITS);
      return { variable, meant: near === undefined ? undefined : unprefixed.get(near) };
    });
}

/** Also `SIGNALBOX_PORT`, if it is the address of such a service rather than the port to listen on. */
export function isServiceLink(variable: string, value: string): boolean {
  const isAddress = /^SIGNALBOX_(?:\w+_)?PORT$/.test(variable) && /^(?:tcp|udp|sctp):\/\//.test(value);
  return isAddress || SERVICE_LINK.test(variable);
}
