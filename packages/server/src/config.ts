// What the operator can set, and the only reader of process.env.
//
// `settings` is the one table: options of `signalbox start`, environment variables, defaults. An option goes before its
// variable; an empty variable counts as none, as container tools write it. Every problem is reported at once.
import { resolve } from 'node:path';
import { type EgressPolicy, parseEgressAllow } from './egress/policy.ts';
import { parseEgressProxy } from './egress/proxy.ts';
import {
  parseCollector,
  parseCount,
  parseDatabaseUrl,
  parseDays,
  parseHeaders,
  parseHost,
  parseIssuer,
  parseNetworks,
  parsePort,
  parsePublicUrl,
  parseRateLimits,
  parseSeconds,
  parseToken,
} from './lib/setting-values.ts';
import { parsePrices } from './usage/prices.ts';
import { parseMasterKeys } from './vault/master-key.ts';
import { parseProviderKeys } from './vault/provider-keys.ts';

const roles = ['api', 'runtime', 'delivery'] as const;
/** Parts that a node runs: the HTTP interface, the turns of Sessions, the sending of webhooks. */
type Role = (typeof roles)[number];

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

interface Setting<T> {
  /** The option of the command, without its dashes; undefined where a variable is the only way (secrets, mostly). */
  option?: string;
  variable: string;
  /** As it would be written; undefined where nothing is set unless the operator does. */
  default?: string;
  /** In one line, for `--help`. */
  about: string;
  /** Throws an Error, or several as one AggregateError, whose message says what would be right, and shows no value that may be secret. */
  parse(text: string, env: Env): T;
}

type Env = Readonly<Record<string, string | undefined>>;

const setting = <T>(definition: Setting<T>): Setting<T> => definition;
const required = <T>(definition: Setting<T> & { default: string }): Setting<T> & { default: string } => definition;

export const settings = {
  port: required({
    option: 'port',
    variable: 'SIGNALBOX_PORT',
    default: '4500',
    about: 'the port of the HTTP interface; 0 takes any that is free',
    parse: parsePort,
  }),
  host: required({
    option: 'host',
    variable: 'SIGNALBOX_HOST',
    default: '127.0.0.1',
    about: 'the address to listen on; 0.0.0.0 is every one of this machine',
    parse: parseHost,
  }),
  dataDir: required({
    option: 'data-dir',
    variable: 'SIGNALBOX_DATA_DIR',
    default: './data',
    about: 'where the embedded PostgreSQL and the master key file are kept',
    parse: (text) => resolve(text),
  }),
  publicUrl: setting({
    option: 'public-url',
    variable: 'SIGNALBOX_PUBLIC_URL',
    about:
      'where people open the console, such as https://signalbox.example.com; http://localhost and the port unless set',
    parse: parsePublicUrl,
  }),
  signInDays: required({
    variable: 'SIGNALBOX_SIGN_IN_DAYS',
    default: '7',
    about: 'after how many days without use a sign-in to the console ends',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 90 }),
  }),
  oidcIssuer: setting({
    variable: 'SIGNALBOX_OIDC_ISSUER',
    about: 'an OpenID Connect provider by which people may sign in: its issuer',
    parse: parseIssuer,
  }),
  oidcClientId: setting({
    variable: 'SIGNALBOX_OIDC_CLIENT_ID',
    about: 'what the provider calls this service',
    parse: (text) => text,
  }),
  oidcClientSecret: setting({
    variable: 'SIGNALBOX_OIDC_CLIENT_SECRET',
    about: 'the secret that goes with it',
    parse: (text) => text,
  }),
  oidcName: required({
    variable: 'SIGNALBOX_OIDC_NAME',
    default: 'Single sign-on',
    about: 'what the console calls the provider',
    parse: (text) => text,
  }),
  adminKeyFile: setting({
    option: 'admin-key-file',
    variable: 'SIGNALBOX_ADMIN_KEY_FILE',
    about: 'on the first start, the secret of an admin key is written to this new file',
    parse: (text) => resolve(text),
  }),
  databaseUrl: setting({
    variable: 'DATABASE_URL',
    about: 'a PostgreSQL (15 or later) to use instead of the embedded one',
    parse: parseDatabaseUrl,
  }),
  listenUrl: setting({
    variable: 'SIGNALBOX_LISTEN_URL',
    about: 'a direct connection to the same database, where DATABASE_URL leads through a pooler',
    parse: parseDatabaseUrl,
  }),
  databaseConnections: required({
    variable: 'SIGNALBOX_DATABASE_CONNECTIONS',
    default: '20',
    about: 'how many connections to the database a node opens at most for its work; up to 6 more for other ends',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 1000 }),
  }),
  masterKeys: setting({
    variable: 'SIGNALBOX_MASTER_KEY',
    about: 'the key that secrets are sealed under; several: the first seals, all open',
    parse: (text): readonly Buffer[] => parseMasterKeys(text),
  }),
  egress: required({
    variable: 'SIGNALBOX_EGRESS_ALLOW',
    default: '',
    about: 'private addresses and hosts that webhooks, tools and models may reach',
    parse: parseEgress,
  }),
  egressProxy: setting({
    variable: 'SIGNALBOX_EGRESS_PROXY',
    about: 'the proxy by which webhooks, tools and models reach public addresses',
    parse: parseEgressProxy,
  }),
  providerKeys: required({
    variable: 'SIGNALBOX_PROVIDER_KEYS',
    default: '',
    about: 'providers whose keys in this environment every Agent may use: openai, anthropic, google',
    parse: parseProviderKeys,
  }),
  prices: required({
    variable: 'SIGNALBOX_MODEL_PRICES',
    default: '',
    about: 'what models cost per million tokens: a JSON file, or the JSON itself',
    parse: parsePrices,
  }),
  roles: required({
    variable: 'SIGNALBOX_ROLES',
    default: roles.join(','),
    about: 'which parts this node runs',
    parse: parseRoles,
  }),
  leaseSeconds: required({
    variable: 'SIGNALBOX_LEASE_SECONDS',
    default: '15',
    about: 'how long Sessions of a node that died wait at most before another takes them',
    parse: (text) => parseSeconds(text, { minimum: 1, maximum: 300 }),
  }),
  graceSeconds: required({
    variable: 'SIGNALBOX_GRACE_SECONDS',
    default: '20',
    about: 'how long a turn may take to come to the end of its step when the node stops',
    parse: (text) => parseSeconds(text, { minimum: 0, maximum: 3600 }),
  }),
  drainSeconds: required({
    variable: 'SIGNALBOX_DRAIN_SECONDS',
    default: '5',
    about: 'how long a node that is asked to stop says that it is not ready, and serves on',
    parse: (text) => parseSeconds(text, { minimum: 0, maximum: 600 }),
  }),
  eventsKeptDays: required({
    variable: 'SIGNALBOX_EVENTS_KEPT_DAYS',
    default: '400',
    about: 'how long records of the event log are kept',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  deliveriesKeptDays: required({
    variable: 'SIGNALBOX_DELIVERIES_KEPT_DAYS',
    default: '30',
    about: 'how long webhook deliveries that are over can be looked at',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  sessionsKeptDays: setting({
    variable: 'SIGNALBOX_SESSIONS_KEPT_DAYS',
    about: 'how long sessions that have ended are kept; an environment may say less. Unset, until they are deleted',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  trustProxy: required({
    variable: 'SIGNALBOX_TRUST_PROXY',
    default: '',
    about: 'proxies in front of the service, whose X-Forwarded-For is believed',
    parse: parseNetworks,
  }),
  rateLimits: required({
    variable: 'SIGNALBOX_RATE_LIMITS',
    default: '',
    about: 'requests a minute that a key may make of a node, such as reads=6000,writes=600,keys=30',
    parse: parseRateLimits,
  }),
  authFailuresPerMinute: required({
    variable: 'SIGNALBOX_AUTH_FAILURES_PER_MINUTE',
    default: '100',
    about: 'how many requests with a wrong key an address may make in a minute; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
  }),
  maxRequestsInFlight: required({
    variable: 'SIGNALBOX_MAX_REQUESTS_IN_FLIGHT',
    default: '500',
    about: 'how many requests a node answers at once before it says 503',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 1_000_000 }),
  }),
  maxConnections: required({
    variable: 'SIGNALBOX_MAX_CONNECTIONS',
    default: '20000',
    about: 'how many connections a node takes at once; more are closed unanswered',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 1_000_000 }),
  }),
  maxStreamsPerKey: required({
    variable: 'SIGNALBOX_MAX_STREAMS_PER_KEY',
    default: '10000',
    about: 'how many streams and long polls a key may have open on a node; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
  }),
  maxUnreadMegabytes: required({
    variable: 'SIGNALBOX_MAX_UNREAD_MEGABYTES',
    default: '256',
    about: 'how much of its responses a node holds for clients that read slowly',
    parse: (text) => parseCount(text, { minimum: 16, maximum: 1_000_000 }),
  }),
  maxOpenSessions: required({
    variable: 'SIGNALBOX_MAX_OPEN_SESSIONS',
    default: '0',
    about: 'how many open Sessions an organization may have; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
  }),
  maxHeaderBytes: required({
    variable: 'SIGNALBOX_MAX_HEADER_BYTES',
    default: '16384',
    about: 'how long the headers of a request may be together',
    parse: (text) => parseCount(text, { minimum: 4096, maximum: 1_048_576 }),
  }),
  requestTimeoutSeconds: required({
    variable: 'SIGNALBOX_REQUEST_TIMEOUT_SECONDS',
    default: '60',
    about: 'how long a request may take to arrive',
    parse: (text) => parseSeconds(text, { minimum: 1, maximum: 3600 }),
  }),
  statementTimeoutSeconds: required({
    variable: 'SIGNALBOX_STATEMENT_TIMEOUT_SECONDS',
    default: '60',
    about: 'how long a statement of the database may take; 0 is no limit',
    parse: (text) => parseSeconds(text, { minimum: 0, maximum: 3600 }),
  }),
  metricsToken: setting({
    variable: 'SIGNALBOX_METRICS_TOKEN',
    about: 'the bearer token by which other hosts may read /metrics',
    parse: parseToken,
  }),
  metricsPort: setting({
    variable: 'SIGNALBOX_METRICS_PORT',
    about: 'a port of its own for /metrics, /healthz and /readyz, also of a node without the role api',
    parse: parsePort,
  }),
  otlpEndpoint: setting({
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    about: 'the collector that takes traces, by OTLP over HTTP: its base URL',
    parse: parseCollector,
  }),
  otlpHeaders: required({
    variable: 'OTEL_EXPORTER_OTLP_HEADERS',
    default: '',
    about: 'headers for the collector, as name=value separated by commas',
    parse: parseHeaders,
  }),
  logLevel: required({
    variable: 'SIGNALBOX_LOG_LEVEL',
    default: 'info',
    about: `the least level that is logged: ${logLevels.join(', ')}`,
    parse: parseLogLevel,
  }),
};

type Settings = typeof settings;
type Value<S> = S extends { default: string; parse(text: string, env: Env): infer T }
  ? T
  : S extends { parse(text: string, env: Env): infer T }
    ? T | undefined
    : never;
export type Config = { readonly [K in keyof Settings]: Value<Settings[K]> };

/** An OpenID Connect provider by which people may sign in. */
export interface OidcProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly name: string;
}

/** The provider of a configuration, where it has one. */
export function oidcOf({ oidcIssuer, oidcClientId, oidcClientSecret, oidcName }: Config): OidcProvider | undefined {
  if (oidcIssuer === undefined || oidcClientId === undefined || oidcClientSecret === undefined) return undefined;
  return { issuer: oidcIssuer, clientId: oidcClientId, clientSecret: oidcClientSecret, name: oidcName };
}

/** One line a problem; each names the option or variable and says what would be right. */
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
  const problems: string[] = [];
  const config: Record<string, unknown> = {};
  for (const [name, { option, variable, default: fallback, parse }] of Object.entries<Setting<unknown>>(settings)) {
    const given = option === undefined ? undefined : options[option];
    const [source, text] = given === undefined ? [variable, env[variable] || fallback] : [`--${option}`, given];
    try {
      config[name] = text === undefined ? undefined : parse(text, env);
    } catch (error) {
      const errors: Error[] = error instanceof AggregateError ? error.errors : [error];
      problems.push(...errors.map(({ message }) => `${source}: ${message}`));
    }
  }
  if (config.listenUrl !== undefined && !env.DATABASE_URL) {
    problems.push(
      'SIGNALBOX_LISTEN_URL: is of use only beside DATABASE_URL; set both, or none for the embedded database',
    );
  }
  const oidc = [config.oidcIssuer, config.oidcClientId, config.oidcClientSecret];
  if (oidc.some((part) => part === undefined) && oidc.some((part) => part !== undefined)) {
    problems.push(
      'SIGNALBOX_OIDC_ISSUER: goes with SIGNALBOX_OIDC_CLIENT_ID and SIGNALBOX_OIDC_CLIENT_SECRET; set all or none of them',
    );
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config as Config;
}

function parseEgress(text: string): EgressPolicy {
  try {
    return parseEgressAllow(text);
  } catch (error) {
    throw new Error((error as Error).message.replace(/^SIGNALBOX_EGRESS_ALLOW: /, ''));
  }
}

function parseRoles(text: string): ReadonlySet<Role> {
  const found = text.split(',').map((part) => part.trim());
  const unknown = found.find((role) => !roles.includes(role as Role));
  if (unknown !== undefined) {
    throw new Error(`"${unknown}" is not a role; give one or more of ${roles.join(', ')}, separated by commas`);
  }
  return new Set(found as Role[]);
}

function parseLogLevel(text: string): string {
  if (!logLevels.includes(text as (typeof logLevels)[number])) {
    throw new Error(`"${text}" is not a level; give one of ${logLevels.join(', ')}`);
  }
  return text;
}
