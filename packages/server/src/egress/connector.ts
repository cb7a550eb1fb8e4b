/**
 * Opens every connection of ours. The order is what keeps a request from going where it must not:
 *
 *   1. judge the destination itself: scheme, port, and the host where it is an address (those are never looked up)
 *   2. look the name up, and judge every answer
 *   3. connect to those answers and to no others: the name is not looked up a second time
 *   4. judge the address that the socket says it is connected to, before TLS or HTTP write a byte
 *
 * One forbidden answer refuses them all. Connecting to the others would be as safe, but whether a request goes out
 * would then depend on which address answers first, and a name that mixes public with private addresses is either an
 * attack or a mistake that someone should hear about. `localhost` is the exception: it always has two addresses, and
 * the operator may have opened one.
 *
 * Where the operator has an outbound proxy, public addresses are reached by way of it (proxy.ts): step 3 is then a CONNECT
 * to one of those answers, and step 4 the proxy's.
 *
 * Time runs from the look-up to the end of the TLS handshake.
 */
import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { buildConnector } from 'undici';
import { EgressError, stageError } from './errors.ts';
import type { Lookup } from './lookup.ts';
import {
  type Destination,
  type EgressPolicy,
  isHostListed,
  isLocalhost,
  isPublicAddress,
  judgeAddress,
  judgeDestination,
  LOCALHOST_ADDRESSES,
} from './policy.ts';
import { type EgressProxy, openTunnel } from './proxy.ts';
import { type Deadline, settled, startTls, withDeadline } from './sockets.ts';

/** How long one address of several is tried before the next: far ends with a second of round trip are rare. */
const ADDRESS_ATTEMPT_TIMEOUT_MS = 1000;

/** How long a silent connection lasts before the system asks the other end whether it is still there. */
const TCP_KEEP_ALIVE_DELAY_MS = 60_000;

const SOCKET_OPTIONS = {
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT_MS,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
} as const;

export interface ConnectorOptions {
  readonly policy: EgressPolicy;
  readonly lookup: Lookup;
  readonly connectTimeoutMs: number;
  /** What public addresses are reached through. */
  readonly proxy?: EgressProxy;
  /** Certificate authorities (PEM) instead of the ones that Node trusts. */
  readonly ca?: string;
  /** Opens the TCP connection; `net.connect` but in tests of step 4. */
  readonly open?: (options: TcpNetConnectOpts) => Socket;
}

/** A connector for undici's `connect` option. It gives its callback a socket that may be written to, or an `EgressError`. */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  return ({ hostname, protocol, port }, callback) => {
    const destination = { protocol, host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    connect(options, destination).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(stageError('connect', error), null),
    );
  };
}

async function connect(options: ConnectorOptions, destination: Destination): Promise<Socket> {
  const { policy, connectTimeoutMs, proxy, ca } = options;
  assertAllowed(judgeDestination(policy, destination));
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), connectTimeoutMs);
  const deadline = { signal: late.signal, ms: connectTimeoutMs };
  try {
    const addresses = await vettedAddresses(options, destination, late.signal);
    const direct = proxy === undefined ? addresses : addresses.filter((address) => !isPublicAddress(address));
    const socket =
      proxy === undefined || direct.length > 0
        ? await openTcp(options, destination, direct, deadline)
        : await openByProxy(options, proxy, destination, addresses, deadline);
    return destination.protocol === 'https:' ? await startTls(socket, destination.host, ca, deadline) : socket;
  } finally {
    clearTimeout(timer);
  }
}

function assertAllowed(judgement: ReturnType<typeof judgeAddress>): void {
  if (!judgement.ok) throw new EgressError('not_allowed', judgement.reason);
}

async function vettedAddresses(
  { policy, lookup }: ConnectorOptions,
  destination: Destination,
  deadline: AbortSignal,
): Promise<readonly string[]> {
  const { host } = destination;
  if (isIP(host) !== 0) return [host];
  if (isLocalhost(host)) {
    return LOCALHOST_ADDRESSES.filter((address) => judgeAddress(policy, address, destination).ok);
  }
  const system = policy.addresses.length > 0 || isHostListed(policy, destination);
  const answers = await withDeadline(
    deadline,
    () => new EgressError('dns', `resolving ${host} took too long`),
    async () => await lookup(host, { system }),
  ).catch((error: unknown) => {
    throw stageError('dns', error);
  });
  for (const address of answers) assertAllowed(judgeAddress(policy, address, destination));
  return answers;
}

function openTcp(
  { policy, open = netConnect }: ConnectorOptions,
  destination: Destination,
  addresses: readonly string[],
  deadline: Deadline,
): Promise<Socket> {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  const socket = open({
    host: destination.host,
    port: destination.port,
    // Stands in for DNS, so that Node tries one address after the other among the vetted ones alone.
    lookup: (_hostname, { all }, done) => {
      const [first] = answers;
      if (first === undefined) done(new Error('no address'), '');
      else if (all) done(null, answers);
      else done(null, first.address, first.family);
    },
    ...SOCKET_OPTIONS,
  });
  return settled(socket, 'connect', 'connect', deadline, () => {
    assertAllowed(judgeAddress(policy, socket.remoteAddress ?? 'unknown', destination));
    return socket;
  });
}

/** The proxy itself is the operator's and is not judged. */
async function openByProxy(
  { ca, open = netConnect }: ConnectorOptions,
  proxy: EgressProxy,
  { port }: Destination,
  addresses: readonly string[],
  deadline: Deadline,
): Promise<Socket> {
  let refusal: unknown = new EgressError('connect', 'no address');
  for (const address of addresses) {
    const tcp = open({ host: proxy.host, port: proxy.port, ...SOCKET_OPTIONS });
    await settled(tcp, 'connect', 'connect', deadline, () => tcp);
    const socket = proxy.protocol === 'https:' ? await startTls(tcp, proxy.host, ca, deadline) : tcp;
    try {
      return await openTunnel(proxy, socket, { address, port }, deadline);
    } catch (error) {
      refusal = error;
      if (deadline.signal.aborted) break;
    }
  }
  throw refusal;
}
