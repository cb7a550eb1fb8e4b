// Everything that the operator can configure (settings.ts). This is the only file that reads process.env.
//
// An option takes precedence over its variable. An empty variable counts as not set, because container tools write it that way. All
// problems are reported at once.
//
// Each variable, and each provider's API key, can be in a file that VARIABLE_FILE names: containers, Kubernetes and systemd hand over
// secrets as files, because other programs can see the environment of a process.
import { readFileSync } from 'node:fs';
import { keyVariables } from '../vault/provider-keys.ts';
import { isServiceLink, otherVariables } from './other-variables.ts';
import type { Env, Setting } from './setting.ts';
import { settingGroups } from './settings.ts';

type Groups = typeof settingGroups;
type Merged<T> = (T extends unknown ? (each: T) => void : never) extends (all: infer All) => void ? All : never;
type Settings = Merged<Groups[keyof Groups]>;

/** The settings of all groups. */
export const settings: Settings = Object.assign({}, ...Object.values(settingGroups));

const variables = Object.values<Setting<unknown>>(settings).map(({ variable }) => variable);

type Value<S> = S extends { default: string; parse(text: string, env: Env): infer T }
  ? T
  : S extends { parse(text: string, env: Env): infer T }
    ? T | undefined
    : never;
export type Config = { readonly [K in keyof Settings]: Value<Settings[K]> };

/** An OpenID Connect provider for signing in to the console. */
export interface OidcProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly name: string;
}

/** The provider of a configuration, if it has one. */
export function oidcOf({ oidcIssuer, oidcClientId, oidcClientSecret, oidcName }: Config): OidcProvider | undefined {
  if (oidcIssuer === undefined || oidcClientId === undefined || oidcClientSecret === undefined) return undefined;
  return { issuer: oidcIssuer, clientId: oidcClientId, clientSecret: oidcClientSecret, name: oidcName };
}

/** One line for each problem. Each names the option or variable and says what is allowed. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** `options` by their names without dashes, as `util.parseArgs` gives them. Throws `ConfigError` with every problem. */
export function readConfig(options: Readonly<Record<string, string | undefined>> = {}, env: Env = process.env): Config {
  const config: Record<string, unknown> = {};
  const problems = otherVariables(env, variables).flatMap(({ variable, meant }) =>
    meant === undefined ? [] : [`${variable}: is not a setting. Did you mean ${meant}?`],
  );
  const values = withFiles(env, problems);
  for (const [name, { option, variable, default: fallback, parse }] of Object.entries<Setting<unknown>>(settings)) {
    const given = option === undefined ? undefined : options[option];
    const [source, text] = given === undefined ? [variable, values[variable] || fallback] : [`--${option}`, given];
    try {
      config[name] = text === undefined ? undefined : parse(text, values);
    } catch (error) {
      const errors: Error[] = error instanceof AggregateError ? error.errors : [error];
      problems.push(...errors.map(({ message }) => `${source}: ${message}`));
    }
  }
  if (config.listenUrl !== undefined && !values.DATABASE_URL) {
    problems.push('SIGNALBOX_LISTEN_URL: needs DATABASE_URL; set both, or neither for the embedded database');
  }
  const oidc = [config.oidcIssuer, config.oidcClientId, config.oidcClientSecret];
  if (oidc.some((part) => part === undefined) && oidc.some((part) => part !== undefined)) {
    problems.push(
      'SIGNALBOX_OIDC_ISSUER: needs SIGNALBOX_OIDC_CLIENT_ID and SIGNALBOX_OIDC_CLIENT_SECRET; set all three, or none of them',
    );
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config as Config;
}

/** Variables that are neither settings nor known to be of something else. They have no effect. */
export function unknownVariables(env: Env = process.env): string[] {
  return otherVariables(env, variables).flatMap(({ variable, meant }) => (meant === undefined ? [variable] : []));
}

/** The variables, with the contents of the files that `VARIABLE_FILE` names. A file that can't be used becomes a problem. */
function withFiles(env: Env, problems: string[]): Env {
  const values = Object.fromEntries(
    Object.entries(env).filter(([variable, value]) => !isServiceLink(variable, value ?? '')),
  );
  for (const variable of [...variables, ...keyVariables]) {
    const file = env[`${variable}_FILE`];
    if (!file) continue;
    const problem = (text: string) => problems.push(`${variable}_FILE: ${text}`);
    if (env[variable]) {
      problem(`${variable} is set too; use one of the two`);
      continue;
    }
    try {
      values[variable] = readFileSync(file, 'utf8').trim();
      if (values[variable] === '') problem(`${file} is empty`);
    } catch (error) {
      problem(`${file} can't be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return values;
}
