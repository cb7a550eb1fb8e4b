/**
 * Decides where an outgoing request may go. Pure functions, without I/O.
 *
 * Anyone who can write a webhook url, a tool or a model's base url makes this host send requests, so by default only public addresses
 * over `https` are allowed. The operator allows more with `SIGNALBOX_EGRESS_ALLOW`. Its entries are address rules (an address or a
 * CIDR) and host rules (a name, or `*.` and a name), each for all ports or for one.
 *
 * There are two checks, because a name does not show where it leads:
 *
 *   judgeUrl      when a url is configured: its form, its scheme, and its host if that is an address in any notation
 *   judgeAddress  for every connection: each address of the host, and the one that the socket is connected to
 *
 * Any url may lead to an address that an address rule covers. A host rule allows its name to lead to private ranges, but not to
 * link-local and other special addresses: clouds keep credentials there and at some private addresses (`CLOUD_METADATA`), and the
 * owner of one name below `*.example.com` must not be able to point it at them. `http` is allowed only for what a rule covers.
 */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import { type Network, parseNetwork } from '../lib/network.ts';

type Ip = ipaddr.IPv4 | ipaddr.IPv6;

interface AddressRule {
  readonly network: Ip;
  readonly prefixLength: number;
  /** The port that it applies to; null: every port. */
  readonly port: number | null;
}

interface HostRule {
  readonly name: string;
  /** True for `*.name`: every name below it, at any depth, but not the name itself. */
  readonly below: boolean;
  readonly port: number | null;
}

/** What the operator allowed, as parsed by `parseEgressAllow`. Immutable. */
export interface EgressPolicy {
  readonly addresses: readonly AddressRule[];
  readonly hosts: readonly HostRule[];
}

/** The host and port of a url: a name, or an address in canonical notation without brackets. */
export interface Destination {
  readonly protocol: string;
  readonly host: string;
  readonly port: number;
}

/** The reason of a refusal is for the operator's log; the user learns only that the url is not allowed. */
export type Judgement = { readonly ok: true } | { readonly ok: false; readonly reason: string };

const ALLOWED: Judgement = { ok: true };

function refused(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

/** Enough for a signed url with a long query, and little for a parser. */
const URL_MAX_LENGTH = 8192;

/** The default ports. */
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'http:': 80 };

/** The ranges of private networks, which a host rule allows. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set(['private', 'loopback', 'carrierGradeNat', 'uniqueLocal']);

/** The addresses of `localhost` by RFC 6761, which is never looked up. */
export const LOCALHOST_ADDRESSES: readonly string[] = ['127.0.0.1', '::1'];

/** The global unicast range of IPv6. Anything else (IPv4-compatible, site-local, …) is not public. */
const GLOBAL_UNICAST_IPV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/** Addresses whose last 32 bits are an IPv4 address: IPv4-mapped, and NAT64's well-known prefix. */
const IPV4_IN_IPV6: readonly [ipaddr.IPv6, number][] = [
  [ipaddr.IPv6.parse('::ffff:0:0'), 96],
  // Behind a DNS64 every IPv4-only host has such an address, so the IPv4 address is what is checked.
  [ipaddr.IPv6.parse('64:ff9b::'), 96],
];

/**
 * Where clouds give any program on a machine its credentials and configuration. Some of these look public or are in private ranges.
 * Only a rule for exactly this address allows one.
 */
const CLOUD_METADATA: ReadonlySet<string> = new Set([
  '169.254.169.254', // most clouds
  '169.254.170.2', // tasks of AWS ECS
  '169.254.170.23', // pods of AWS EKS
  '168.63.129.16', // Azure's host agent
  '100.100.100.200', // Alibaba
  '192.0.0.192', // Oracle
  'fd00:c1::a9fe:a9fe', // Oracle
  '169.254.42.42', // Scaleway
  'fd00:42::42', // Scaleway
  '169.254.0.23', // Tencent
  'fd00:ec2::254', // AWS
  'fd00:ec2::23', // pods of AWS EKS
  'fd20:ce::254', // Google
]);

const NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/** A refused entry of `SIGNALBOX_EGRESS_ALLOW`. The message names the entry: it is the operator's own text. */
export class EgressAllowError extends Error {
  override readonly name = 'EgressAllowError';
}

/**
 * Reads `SIGNALBOX_EGRESS_ALLOW`: entries separated by commas, each `10.0.0.0/8`, `192.168.1.5`, `fd00::/8`,
 * `hooks.example.com` or `*.example.com`, and with a port `10.0.0.0/8:8080`, `[fd00::/8]:8080`, `hooks.example.com:8080`.
 * An empty text allows nothing. Throws `EgressAllowError` at the first entry that is none of these.
 */
export function parseEgressAllow(text: string): EgressPolicy {
  const addresses: AddressRule[] = [];
  const hosts: HostRule[] = [];
  for (const part of text.split(',')) {
    const entry = part.trim();
    if (entry === '') continue;
    const { target, port } = splitPort(entry);
    if (/[:/]/.test(target) || isIP(target) !== 0) addresses.push({ ...parseRange(entry, target), port });
    else hosts.push({ ...parseHostPattern(entry, target), port });
  }
  return { addresses, hosts };
}

function badEntry(entry: string, problem: string): EgressAllowError {
  return new EgressAllowError(`SIGNALBOX_EGRESS_ALLOW: "${entry}" ${problem}`);
}

function splitPort(entry: string): { target: string; port: number | null } {
  if (entry.includes('://')) throw badEntry(entry, 'is a URL; use only its host and port');
  const bracketed = /^\[([^\]]+)\](?::(.*))?$/.exec(entry);
  // Without brackets a second colon belongs to an IPv6 address, never to a port.
  const plain = bracketed ?? /^([^:]*)(?::([^:]*))?$/.exec(entry);
  if (plain === null) return { target: entry, port: null };
  if (bracketed !== null && !bracketed[1]?.includes(':'))
    throw badEntry(entry, 'has brackets around something other than IPv6');
  const [, target = '', portText] = plain;
  if (portText === undefined) return { target, port: null };
  const port = Number(portText);
  if (!/^\d{1,5}$/.test(portText) || port < 1 || port > 65_535)
    throw badEntry(entry, 'has a port outside of 1 to 65535');
  return { target, port };
}

function parseRange(entry: string, target: string): { network: Ip; prefixLength: number } {
  const { address, prefixLength } = parseOrRefuse(entry, target);
  if (address instanceof ipaddr.IPv6 && IPV4_IN_IPV6.some((range) => address.match(range))) {
    throw badEntry(entry, 'means IPv4 addresses; list those instead');
  }
  return { network: address, prefixLength };
}

function parseOrRefuse(entry: string, target: string): Network {
  try {
    return parseNetwork(target);
  } catch (error) {
    throw badEntry(entry, (error as Error).message.replace('an address nor a CIDR', 'an address, a CIDR nor a host'));
  }
}

function parseHostPattern(entry: string, target: string): { name: string; below: boolean } {
  const below = target.startsWith('*.');
  const name = domainToASCII(below ? target.slice(2) : target).replace(/\.$/, '');
  // A name that ends in digits would be an address in another notation, which no url's host can equal.
  if (!NAME.test(name) || /(^|\.)(\d+|0x[\da-f]*)$/.test(name)) {
    throw badEntry(entry, 'is neither an address, a CIDR nor a host');
  }
  return { name, below };
}

/**
 * Checks a url as configured. If its host is a name, the connection may still be refused later. The WHATWG parser recognizes an
 * address in any notation; texts that other parsers read differently are refused.
 */
export function judgeUrl(
  policy: EgressPolicy,
  text: string,
): { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly reason: string } {
  if (text.length > URL_MAX_LENGTH) return refused(`the URL is longer than ${URL_MAX_LENGTH} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the parser drops tabs and line breaks, so they are looked for before
  if (/[\u0000-\u0020\u007f\\]/.test(text))
    return refused('the URL contains a space, a control character or a backslash');
  const authority = /^https?:\/\/([^/?#]+)(?:[/?#]|$)/i.exec(text)?.[1];
  if (authority === undefined) return refused('the URL is not https:// or http:// with a host');
  if (authority.includes('@')) return refused('the URL contains user info');
  if (text.includes('#')) return refused('the URL contains a fragment, which is never sent');
  const url = URL.parse(text);
  if (url === null) return refused("the URL can't be parsed");
  const judgement = judgeDestination(policy, destinationOf(url));
  return judgement.ok ? { ok: true, url } : judgement;
}

/** The destination of a parsed `http:` or `https:` url. */
export function destinationOf(url: URL): Destination {
  const { protocol, hostname } = url;
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return { protocol, host, port: url.port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(url.port) };
}

/** Checks scheme, host and port, as far as possible before the host's addresses are known. */
export function judgeDestination(policy: EgressPolicy, destination: Destination): Judgement {
  const { protocol, host, port } = destination;
  if (protocol !== 'https:' && protocol !== 'http:') return refused(`the scheme ${protocol} is not http or https`);
  if (port === 0) return refused('the port is 0');
  if (isIP(host) !== 0) return judgeAddress(policy, host, destination);
  // A host must have one spelling for all comparisons, so a trailing dot is refused.
  if (!NAME.test(host)) return refused('the host is not a valid host name');
  if (isHostListed(policy, destination)) return ALLOWED;
  if (isLocalhost(host)) {
    return LOCALHOST_ADDRESSES.some((address) => isAddressListed(policy, ipaddr.parse(address), port))
      ? ALLOWED
      : refused('localhost is this machine');
  }
  // Both can only lead to a listed address, which is checked after the look-up.
  const mayBeListed = policy.addresses.some((rule) => rule.port === null || rule.port === port);
  if (protocol === 'http:' && !mayBeListed)
    return refused('http is allowed only for hosts and addresses that the operator listed');
  if (!host.includes('.') && !mayBeListed) return refused('a host without a dot is never public');
  return ALLOWED;
}

/**
 * Checks one address of a destination's host, or the one that a socket is connected to. `address` is in the system's notation; a zone
 * (`%eth0`) is refused.
 */
export function judgeAddress(policy: EgressPolicy, address: string, destination: Destination): Judgement {
  if (isIP(address) === 0 || address.includes('%')) return refused(`${address} is not a plain address`);
  const ip = unwrap(ipaddr.parse(address));
  if (isAddressListed(policy, ip, destination.port)) return ALLOWED;
  const range = rangeOf(ip);
  const hostListed = isHostListed(policy, destination);
  if (destination.protocol !== 'https:' && !hostListed) {
    return refused(`http is allowed only for addresses that the operator listed, and ${address} is not listed`);
  }
  if (range === 'public' || (hostListed && PRIVATE_RANGES.has(range))) return ALLOWED;
  return refused(`${address} is not public (${range})`);
}

/** Whether an address is public, so that no rule is needed. */
export function isPublicAddress(address: string): boolean {
  return rangeOf(unwrap(ipaddr.parse(address))) === 'public';
}

/** True for the names that always mean this host. */
export function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

/** Whether a host rule of the operator covers this host. */
export function isHostListed(policy: EgressPolicy, { host, port }: Destination): boolean {
  return policy.hosts.some(
    (rule) =>
      (rule.below ? host.endsWith(`.${rule.name}`) : host === rule.name) && (rule.port === null || rule.port === port),
  );
}

function isAddressListed(policy: EgressPolicy, ip: Ip, port: number): boolean {
  const isMetadata = CLOUD_METADATA.has(ip.toString());
  return policy.addresses.some(
    (rule) =>
      rule.network.kind() === ip.kind() &&
      ip.match([rule.network, rule.prefixLength]) &&
      (!isMetadata || rule.prefixLength === ip.toByteArray().length * 8) &&
      (rule.port === null || rule.port === port),
  );
}

function unwrap(ip: Ip): Ip {
  if (ip instanceof ipaddr.IPv4 || !IPV4_IN_IPV6.some((range) => ip.match(range))) return ip;
  return new ipaddr.IPv4(ip.toByteArray().slice(12));
}

function rangeOf(ip: Ip): string {
  if (CLOUD_METADATA.has(ip.toString())) return 'cloudMetadata';
  const range = ip.range();
  if (range !== 'unicast') return range;
  if (ip instanceof ipaddr.IPv6) return ip.match(GLOBAL_UNICAST_IPV6) ? 'public' : 'reserved';
  return 'public';
}
