// The table of settings: options of `signalbox start`, environment variables and defaults, in groups.
import { resolve } from 'node:path';
import { parseEgressProxy } from '../egress/proxy.ts';
import { parseOwnPrices, parsePrices } from '../usage/prices.ts';
import { parseCloudIdentities } from '../vault/cloud-identities.ts';
import { parseMasterKeys } from '../vault/master-key.ts';
import { keyProviders, parseProviderKeys } from '../vault/provider-keys.ts';
import { required, setting } from './setting.ts';
import {
  logLevels,
  parseCollector,
  parseCompression,
  parseContentCapture,
  parseCount,
  parseDatabaseUrl,
  parseDays,
  parseEgress,
  parseFilesUrl,
  parseHeaders,
  parseHost,
  parseIssuer,
  parseLogFormat,
  parseLogLevel,
  parseNetworks,
  parsePort,
  parsePublicUrl,
  parseRateLimits,
  parseRoles,
  parseSeconds,
  parseSwitch,
  parseToken,
  roles,
} from './setting-values.ts';

/** In the order of docs/reference/configuration.md, and of `--help`. */
export const settingGroups = {
  Network: {
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
    trustProxy: required({
      variable: 'SIGNALBOX_TRUST_PROXY',
      default: '',
      about: 'proxies in front of the service whose X-Forwarded-For is trusted',
      parse: parseNetworks,
    }),
    drainSeconds: required({
      variable: 'SIGNALBOX_DRAIN_SECONDS',
      default: '5',
      about: 'how long a node keeps serving after SIGTERM while /readyz returns 503',
      parse: (text) => parseSeconds(text, { minimum: 0, maximum: 600 }),
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
  },
  Database: {
    dataDir: required({
      option: 'data-dir',
      variable: 'SIGNALBOX_DATA_DIR',
      default: './data',
      about: 'directory of the embedded PostgreSQL and the master key file',
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
    filesUrl: setting({
      variable: 'SIGNALBOX_FILES_URL',
      about: 'S3-compatible bucket for files, such as s3://bucket/prefix?region=eu-west-1; without it the database',
      parse: parseFilesUrl,
    }),
    statementTimeoutSeconds: required({
      variable: 'SIGNALBOX_STATEMENT_TIMEOUT_SECONDS',
      default: '60',
      about: 'how long a database statement may take; 0 is no limit',
      parse: (text) => parseSeconds(text, { minimum: 0, maximum: 3600 }),
    }),
  },
  Nodes: {
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
    tail: required({
      variable: 'SIGNALBOX_TAIL',
      default: 'off',
      about: 'whether text that streams waits in a tail of the journal: on or off',
      parse: parseSwitch,
    }),
  },
  Secrets: {
    masterKeys: setting({
      variable: 'SIGNALBOX_MASTER_KEY',
      about: 'key that encrypts secrets; of several keys the first encrypts, and all decrypt',
      parse: (text): readonly Buffer[] => parseMasterKeys(text),
    }),
    operatorToken: setting({
      variable: 'SIGNALBOX_OPERATOR_TOKEN',
      about: 'bearer token with which the operator creates organizations over HTTP; without it those routes are closed',
      parse: parseToken,
    }),
    adminKeyFile: setting({
      option: 'admin-key-file',
      variable: 'SIGNALBOX_ADMIN_KEY_FILE',
      about: 'on the first start, create an admin key and write its secret to this new file',
      parse: (text) => resolve(text),
    }),
  },
  'Console and sign-in': {
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
  },
  Models: {
    providerKeys: required({
      variable: 'SIGNALBOX_PROVIDER_KEYS',
      default: '',
      about: `providers whose API keys in the service's environment agents can use: ${keyProviders}`,
      parse: parseProviderKeys,
    }),
    cloudIdentities: required({
      variable: 'SIGNALBOX_CLOUD_IDENTITIES',
      default: '',
      about:
        "environments that can use the machine's own identity at Azure, AWS and Google Cloud: ORGANIZATION_ID/NAME",
      parse: parseCloudIdentities,
    }),
    prices: required({
      variable: 'SIGNALBOX_PRICES',
      default: 'builtin',
      about: 'prices of models: builtin, off, or yours before the built-in ones: a JSON file, or the JSON itself',
      parse: (text, { SIGNALBOX_MODEL_PRICES: own }) => parsePrices(text, own),
    }),
    modelPrices: required({
      variable: 'SIGNALBOX_MODEL_PRICES',
      default: '',
      about: 'your prices of models, if SIGNALBOX_PRICES has none: a JSON file, or the JSON itself',
      parse: (text) => parseOwnPrices(text),
    }),
  },
  Limits: {
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
        'files that a node receives at the same time, half of them of one organization; each uses 1 MiB of memory; beyond it 503',
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
      about: 'memory of a node for responses that slow clients have not read yet, in MiB',
      parse: (text) => parseCount(text, { minimum: 16, maximum: 1_000_000 }),
    }),
    maxOpenSessions: required({
      variable: 'SIGNALBOX_MAX_OPEN_SESSIONS',
      default: '0',
      about: 'open sessions of an organization; 0 is no limit',
      parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000 }),
    }),
    maxFileMegabytes: required({
      variable: 'SIGNALBOX_MAX_FILE_MEGABYTES',
      default: '10240',
      about: 'size of all files of an organization together, in MiB; 0 is no limit',
      parse: (text) => parseCount(text, { minimum: 0, maximum: 1_000_000_000 }),
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
  },
  Retention: {
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
    filesKeptDays: required({
      variable: 'SIGNALBOX_UNUSED_FILES_KEPT_DAYS',
      default: '30',
      about: 'days that files are kept which no session and no schedule uses',
      parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
    }),
    sessionsKeptDays: setting({
      variable: 'SIGNALBOX_SESSIONS_KEPT_DAYS',
      about:
        'days that sessions are kept after they end; an environment can set less; without it, until they are deleted',
      parse: (text) => parseDays(text, { minimum: 1, maximum: 36_500 }),
    }),
  },
  Observability: {
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
    otlpCompression: required({
      variable: 'OTEL_EXPORTER_OTLP_COMPRESSION',
      default: 'none',
      about: 'how spans for the collector are compressed: gzip or none',
      parse: parseCompression,
    }),
    otlpContent: required({
      variable: 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT',
      default: 'NO_CONTENT',
      about: 'whether spans contain what people, models and tools said: SPAN_ONLY or NO_CONTENT',
      parse: parseContentCapture,
    }),
  },
};
