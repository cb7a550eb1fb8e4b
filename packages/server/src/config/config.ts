// Everything that the operator can configure. This is the only file that reads process.env.
//
// `settings` is the one table of options of `signalbox start`, environment variables and defaults. An option takes precedence over
// its variable. An empty variable counts as not set, because container tools write it that way. All problems are reported at once.
import { resolve } from 'node:path';
import { type EgressPolicy, parseEgressAllow } from '../egress/policy.ts';
import { parseEgressProxy } from '../egress/proxy.ts';
import { parsePrices } from '../usage/prices.ts';
import { parseMasterKeys } from '../vault/master-key.ts';
import { keyProviders, parseProviderKeys } from '../vault/provider-keys.ts';
import {
  parseCollector,
  parseCount,
  parseDatabaseUrl,
  parseDays,
  parseFilesUrl,
  parseHeaders,
  parseHost,
  parseIssuer,
  parseNetworks,
  parsePort,
  parsePublicUrl,
  parseRateLimits,
  parseSeconds,
  parseToken,
} from './setting-values.ts';

const roles = ['api', 'runtime', 'delivery'] as const;
/** What a node runs: the API (`api`), the turns of sessions (`runtime`), the sending of webhooks (`delivery`). */
type Role = (typeof roles)[number];

const logFormats = ['auto', 'json', 'text'] as const;
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

interface Setting<T> {
  /** The option of the command, without its dashes; undefined if there is only a variable (mostly for secrets). */
  option?: string;
  variable: string;
  /** As the operator would write it; undefined if there is no default. */
  default?: string;
  /** In one line, for `--help`. */
  about: string;
  /** Throws an Error, or an AggregateError of several. Its message says what is allowed, and shows no value that may be secret. */
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
    about: 'port of the API and the console; 0 selects any free port',
    parse: parsePort,
  }),
  host: required({
    option: 'host',
    variable: 'SIGNALBOX_HOST',
    default: '127.0.0.1',
    about: 'address to listen on; 0.0.0.0 is all addresses of this machine',
    parse: parseHost,
  }),
  dataDir: required({
    option: 'data-dir',
    variable: 'SIGNALBOX_DATA_DIR',
    default: './data',
    about: 'directory of the embedded PostgreSQL and the master key file',
    parse: (text) => resolve(text),
  }),
  publicUrl: setting({
    option: 'public-url',
    variable: 'SIGNALBOX_PUBLIC_URL',
    about: 'address of the console, such as https://signalbox.example.com; without it http://localhost and the port',
    parse: parsePublicUrl,
  }),
  signInDays: required({
    variable: 'SIGNALBOX_SIGN_IN_DAYS',
    default: '7',
    about: 'days without use after which a console sign-in ends',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 90 }),
  }),
  oidcIssuer: setting({
    variable: 'SIGNALBOX_OIDC_ISSUER',
    about: 'issuer of an OpenID Connect provider for signing in to the console',
    parse: parseIssuer,
  }),
  oidcClientId: setting({
    variable: 'SIGNALBOX_OIDC_CLIENT_ID',
    about: 'client ID of this service at the provider',
    parse: (text) => text,
  }),
  oidcClientSecret: setting({
    variable: 'SIGNALBOX_OIDC_CLIENT_SECRET',
    about: 'client secret of this service at the provider',
    parse: (text) => text,
  }),
  oidcName: required({
    variable: 'SIGNALBOX_OIDC_NAME',
    default: 'Single sign-on',
    about: 'name of the provider on the sign-in page',
    parse: (text) => text,
  }),
  adminKeyFile: setting({
    option: 'admin-key-file',
    variable: 'SIGNALBOX_ADMIN_KEY_FILE',
    about: 'on the first start, create an admin key and write its secret to this new file',
    parse: (text) => resolve(text),
  }),
  databaseUrl: setting({
    variable: 'DATABASE_URL',
    about: 'PostgreSQL, 15 or later, to use instead of the embedded one',
    parse: parseDatabaseUrl,
  }),
  listenUrl: setting({
    variable: 'SIGNALBOX_LISTEN_URL',
    about: 'direct connection to the same database, if DATABASE_URL goes through a transaction pooler',
    parse: parseDatabaseUrl,
  }),
  databaseConnections: required({
    variable: 'SIGNALBOX_DATABASE_CONNECTIONS',
    default: '20',
    about: 'maximum number of database connections of a node for its work; up to 6 more for other purposes',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 1000 }),
  }),
  masterKeys: setting({
    variable: 'SIGNALBOX_MASTER_KEY',
    about: 'key that encrypts secrets; of several keys the first encrypts, and all decrypt',
    parse: (text): readonly Buffer[] => parseMasterKeys(text),
  }),
  egress: required({
    variable: 'SIGNALBOX_EGRESS_ALLOW',
    default: '',
    about: 'private addresses and hosts that webhooks, tools and models can reach',
    parse: parseEgress,
  }),
  egressProxy: setting({
    variable: 'SIGNALBOX_EGRESS_PROXY',
    about: 'proxy for requests of webhooks, tools and models to public addresses',
    parse: parseEgressProxy,
  }),
  providerKeys: required({
    variable: 'SIGNALBOX_PROVIDER_KEYS',
    default: '',
    about: `providers whose API keys in the service's environment agents can use: ${keyProviders}`,
    parse: parseProviderKeys,
  }),
  prices: required({
    variable: 'SIGNALBOX_MODEL_PRICES',
    default: '',
    about: 'prices of models per million tokens: a JSON file, or the JSON itself',
    parse: parsePrices,
  }),
  roles: required({
    variable: 'SIGNALBOX_ROLES',
    default: roles.join(','),
    about: 'what this node runs',
    parse: parseRoles,
  }),
  leaseSeconds: required({
    variable: 'SIGNALBOX_LEASE_SECONDS',
    default: '15',
    about: "how long a node's lease lasts: sessions of a dead node wait at most this long for another node",
    parse: (text) => parseSeconds(text, { minimum: 1, maximum: 300 }),
  }),
  graceSeconds: required({
    variable: 'SIGNALBOX_GRACE_SECONDS',
    default: '20',
    about: 'how long running turns may take to finish their step when the node stops',
    parse: (text) => parseSeconds(text, { minimum: 0, maximum: 3600 }),
  }),
  drainSeconds: required({
    variable: 'SIGNALBOX_DRAIN_SECONDS',
    default: '5',
    about: 'how long a node keeps serving after SIGTERM while /readyz returns 503',
    parse: (text) => parseSeconds(text, { minimum: 0, maximum: 600 }),
  }),
  eventsKeptDays: required({
    variable: 'SIGNALBOX_EVENTS_KEPT_DAYS',
    default: '400',
    about: 'days that records stay in the event log',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  deliveriesKeptDays: required({
    variable: 'SIGNALBOX_DELIVERIES_KEPT_DAYS',
    default: '30',
    about: 'days that finished webhook deliveries can be read and resent',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  sessionsKeptDays: setting({
    variable: 'SIGNALBOX_SESSIONS_KEPT_DAYS',
    about:
      'days that sessions are kept after they end; an environment can set less; without it, until they are deleted',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  filesUrl: setting({
    variable: 'SIGNALBOX_FILES_URL',
    about: 'S3-compatible bucket for files, such as s3://bucket/prefix?region=eu-west-1; without it the database',
    parse: parseFilesUrl,
  }),
  filesKeptDays: required({
    variable: 'SIGNALBOX_UNUSED_FILES_KEPT_DAYS',
    default: '30',
    about: 'days that files are kept which no session and no schedule uses',
    parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
  }),
  maxFileMegabytes: required({
    variable: 'SIGNALBOX_MAX_FILE_MEGABYTES',
    default: '10240',
    about: 'size of all files of an organization together, in megabytes; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000_000 }),
  }),
  trustProxy: required({
    variable: 'SIGNALBOX_TRUST_PROXY',
    default: '',
    about: 'proxies in front of the service whose X-Forwarded-For is trusted',
    parse: parseNetworks,
  }),
  rateLimits: required({
    variable: 'SIGNALBOX_RATE_LIMITS',
    default: '',
    about:
      'requests per minute of a key to a node, such as reads=6000,writes=600,keys=30; tokens=60 is for each session or end user with session tokens',
    parse: parseRateLimits,
  }),
  authFailuresPerMinute: required({
    variable: 'SIGNALBOX_AUTH_FAILURES_PER_MINUTE',
    default: '100',
    about: 'failed authentications per minute of an address; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
  }),
  maxRequestsInFlight: required({
    variable: 'SIGNALBOX_MAX_REQUESTS_IN_FLIGHT',
    default: '500',
    about: 'requests that a node processes at the same time; beyond it 503',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 1_000_000 }),
  }),
  maxUploads: required({
    variable: 'SIGNALBOX_MAX_UPLOADS',
    default: '200',
    about:
      'files that a node receives at the same time, half of them of one caller; each uses 1 MiB of memory; beyond it 503',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 100_000 }),
  }),
  maxConnections: required({
    variable: 'SIGNALBOX_MAX_CONNECTIONS',
    default: '20000',
    about: 'open connections of a node; further ones are closed without a response',
    parse: (text) => parseCount(text, { minimum: 1, maximum: 1_000_000 }),
  }),
  maxStreamsPerKey: required({
    variable: 'SIGNALBOX_MAX_STREAMS_PER_KEY',
    default: '10000',
    about: 'open streams and long polls of a key on a node; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
  }),
  maxUnreadMegabytes: required({
    variable: 'SIGNALBOX_MAX_UNREAD_MEGABYTES',
    default: '256',
    about: 'memory of a node for responses that slow clients have not read yet, in megabytes',
    parse: (text) => parseCount(text, { minimum: 16, maximum: 1_000_000 }),
  }),
  maxOpenSessions: required({
    variable: 'SIGNALBOX_MAX_OPEN_SESSIONS',
    default: '0',
    about: 'open sessions of an organization; 0 is no limit',
    parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
  }),
  maxHeaderBytes: required({
    variable: 'SIGNALBOX_MAX_HEADER_BYTES',
    default: '16384',
    about: 'total size of the headers of a request',
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
    about: 'how long a database statement may take; 0 is no limit',
    parse: (text) => parseSeconds(text, { minimum: 0, maximum: 3600 }),
  }),
  metricsToken: setting({
    variable: 'SIGNALBOX_METRICS_TOKEN',
    about: 'bearer token with which other hosts can read /metrics',
    parse: parseToken,
  }),
  metricsPort: setting({
    variable: 'SIGNALBOX_METRICS_PORT',
    about: 'separate port for /metrics, /healthz and /readyz; the only port of a node without the role api',
    parse: parsePort,
  }),
  otlpEndpoint: setting({
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    about: 'base URL of the collector for traces (OTLP over HTTP)',
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
    about: `lowest level that is logged: ${logLevels.join(', ')}`,
    parse: parseLogLevel,
  }),
  logFormat: required({
    variable: 'SIGNALBOX_LOG_FORMAT',
    default: 'auto',
    about: 'format of the log: json, text, or auto, which is text on a terminal',
    parse: parseLogFormat,
  }),
};

type Settings = typeof settings;
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
    throw new Error(`"${unknown}" is not a role; use one or more of ${roles.join(', ')}, separated by commas`);
  }
  return new Set(found as Role[]);
}

function parseLogFormat(text: string): (typeof logFormats)[number] {
  const format = logFormats.find((one) => one === text);
  if (!format) throw new Error(`"${text}" is not a log format; use one of ${logFormats.join(', ')}`);
  return format;
}

function parseLogLevel(text: string): string {
  if (!logLevels.includes(text as (typeof logLevels)[number])) {
    throw new Error(`"${text}" is not a log level; use one of ${logLevels.join(', ')}`);
  }
  return text;
}
