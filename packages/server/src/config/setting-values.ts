// Parsers of settings. Each throws an Error whose message says what is allowed, and does not show a value that may be secret.
import { checkDatabaseUrl } from '../db/url.ts';
import { type EgressPolicy, parseEgressAllow } from '../egress/policy.ts';
import { parseNetwork } from '../lib/network.ts';
import { type RateClass, type RateLimits, rateClasses } from '../lib/rate-limits.ts';

export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Error(`"${text}" is not a port; use a number from 0 to 65535`);
  return port;
}

export function parsePublicUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.search || url.hash || url.username) {
    throw new Error(
      `"${text}" is not the address of a site; use only a scheme and a host, such as https://signalbox.example.com`,
    );
  }
  return url;
}

/** Plain http is allowed only on this machine: on a network anyone on the path could forge the provider's responses. */
export function parseIssuer(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname);
  if (!url || !(url.protocol === 'https:' || isLocal) || url.search || url.hash) {
    throw new Error(`"${text}" is not an issuer; use its https URL, such as https://accounts.example.com`);
  }
  return text;
}

/** A bucket of an S3-compatible store. Its credentials are those that the AWS SDK finds. */
export interface S3Location {
  bucket: string;
  /** The prefix of every key; empty, or ends with `/`. */
  prefix: string;
  region: string;
  /** Undefined: that of AWS. */
  endpoint: string | undefined;
  /** Whether the bucket is in the path rather than in the host. */
  usesPaths: boolean;
}

/** `s3://bucket/prefix?region=eu-west-1&endpoint=https://s3.example.com` */
export function parseFilesUrl(text: string): S3Location {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const { region, endpoint, ...others } = Object.fromEntries(url?.searchParams ?? []);
  const isOrigin = (address: string) => URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
  if (url?.protocol !== 's3:' || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname) || url.username) {
    throw new Error('it is not a bucket; use s3://BUCKET, with a prefix, region and endpoint if needed');
  }
  if (Object.keys(others).length > 0) throw new Error('only region and endpoint can follow the bucket');
  if (endpoint !== undefined && !isOrigin(endpoint)) throw new Error('the endpoint is not an http or https address');
  const prefix = url.pathname.replace(/^\//, '').replace(/\/*$/, '');
  return {
    bucket: url.hostname,
    prefix: prefix === '' ? '' : `${prefix}/`,
    region: region ?? 'us-east-1',
    endpoint,
    usesPaths: endpoint !== undefined,
  };
}

export function parseSeconds(text: string, { minimum, maximum }: { minimum: number; maximum: number }): number {
  const seconds = Number(text);
  if (!/^\d{1,6}$/.test(text) || seconds < minimum || seconds > maximum)
    throw new Error(`"${text}" is not a number of seconds; use a whole number from ${minimum} to ${maximum}`);
  return seconds;
}

export function parseDays(text: string, { minimum, maximum }: { minimum: number; maximum: number }): number {
  const days = Number(text);
  if (!/^\d{1,6}$/.test(text) || days < minimum || days > maximum)
    throw new Error(`"${text}" is not a number of days; use a whole number from ${minimum} to ${maximum}`);
  return days;
}

export function parseCount(text: string, { minimum, maximum }: { minimum: number; maximum: number }): number {
  const count = Number(text);
  if (!/^\d{1,7}$/.test(text) || count < minimum || count > maximum)
    throw new Error(`"${text}" is not allowed; use a whole number from ${minimum} to ${maximum}`);
  return count;
}

export function parseNetworks(text: string): readonly string[] {
  const entries = splitList(text);
  for (const entry of entries) {
    try {
      parseNetwork(entry);
    } catch (error) {
      throw new Error(`"${entry}" ${(error as Error).message}`);
    }
  }
  return entries;
}

export function parseRateLimits(text: string): RateLimits {
  const limits: Partial<Record<RateClass, number>> = {};
  for (const entry of splitList(text)) {
    const [, name, count] = /^(\w+)=(\d{1,7})$/.exec(entry) ?? [];
    if (!rateClasses.includes(name as RateClass) || Number(count) < 1) {
      throw new Error(
        `"${entry}" is not a rate limit; use any of ${rateClasses.map((one) => `${one}=600`).join(', ')}`,
      );
    }
    limits[name as RateClass] = Number(count);
  }
  return limits;
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

export function parseHost(text: string): string {
  if (!/^[A-Za-z0-9.:_-]+$/.test(text)) {
    throw new Error(`"${text}" is not an address; use one such as 127.0.0.1, 0.0.0.0, :: or localhost`);
  }
  return text;
}

/** The value contains a password: the message shows only names of hosts, files and parameters. */
export function parseDatabaseUrl(text: string): string {
  checkDatabaseUrl(text);
  return text;
}

/** The value is secret: the message doesn't show it. */
export function parseToken(text: string): string {
  if (!/^[\x21-\x7e]{16,200}$/.test(text)) {
    throw new Error('is not a token; use 16 to 200 printable ASCII characters without spaces (`openssl rand -hex 32`)');
  }
  return text;
}

export function parseCollector(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new Error('is not the URL of a collector; use one such as http://127.0.0.1:4318');
  }
  return text;
}

/** Values may be secret: the message shows none. They are percent-encoded, as OpenTelemetry specifies. */
export function parseHeaders(text: string): Readonly<Record<string, string>> {
  const headers = splitList(text).map((entry) => {
    const [, name, value] = /^([\w-]+)\s*=\s*(.*)$/.exec(entry) ?? [];
    if (name === undefined || value === undefined) throw new Error('has an entry that is not name=value');
    try {
      return [name, decodeURIComponent(value)] as const;
    } catch {
      throw new Error(`has a value that is not correctly percent-encoded: that of ${name}`);
    }
  });
  return Object.fromEntries(headers);
}

export const roles = ['api', 'runtime', 'delivery'] as const;
/** What a node runs: the API (`api`), the turns of sessions (`runtime`), the sending of webhooks (`delivery`). */
type Role = (typeof roles)[number];

const logFormats = ['auto', 'json', 'text'] as const;
/** Compressions of spans for the collector, by OpenTelemetry's names. */
const compressions = ['none', 'gzip'] as const;
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export function parseEgress(text: string): EgressPolicy {
  try {
    return parseEgressAllow(text);
  } catch (error) {
    throw new Error((error as Error).message.replace(/^SIGNALBOX_EGRESS_ALLOW: /, ''));
  }
}

export function parseRoles(text: string): ReadonlySet<Role> {
  const found = text.split(',').map((part) => part.trim());
  const unknown = found.find((role) => !roles.includes(role as Role));
  if (unknown !== undefined) {
    throw new Error(`"${unknown}" is not a role; use one or more of ${roles.join(', ')}, separated by commas`);
  }
  return new Set(found as Role[]);
}

export function parseLogFormat(text: string): (typeof logFormats)[number] {
  const format = logFormats.find((one) => one === text);
  if (!format) throw new Error(`"${text}" is not a log format; use one of ${logFormats.join(', ')}`);
  return format;
}

export function parseCompression(text: string): (typeof compressions)[number] {
  const compression = compressions.find((one) => one === text);
  if (!compression) throw new Error(`"${text}" is not a compression; use one of ${compressions.join(', ')}`);
  return compression;
}

/** OpenTelemetry's names, and the older `true` and `false`. Whether spans have content. */
export function parseContentCapture(text: string): boolean {
  const value = text.toUpperCase();
  if (value === 'SPAN_ONLY' || value === 'TRUE') return true;
  if (value === 'NO_CONTENT' || value === 'FALSE') return false;
  const events = /EVENT/.test(value) ? ', as there are no events' : '';
  throw new Error(`"${text}" is not possible${events}; use SPAN_ONLY (or true), or NO_CONTENT (or false)`);
}

/** Whether it is on. */
export function parseSwitch(text: string): boolean {
  if (text !== 'on' && text !== 'off') throw new Error(`"${text}" is not possible; use on or off`);
  return text === 'on';
}

export function parseLogLevel(text: string): string {
  if (!logLevels.includes(text as (typeof logLevels)[number])) {
    throw new Error(`"${text}" is not a log level; use one of ${logLevels.join(', ')}`);
  }
  return text;
}
