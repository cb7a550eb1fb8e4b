/**
 * Opens every outgoing connection. The order of the steps keeps a request from reaching a forbidden address:
 *
 *   1. check the destination itself: scheme, port, and the host if it is an address (addresses are never looked up)
 *   2. look up the name, and check every address
 *   3. connect to one of these addresses; the name is not looked up again
 *   4. check the address that the socket is connected to, before TLS or HTTP write a byte
 *
 * One forbidden address refuses the name. Connecting to the others would be as safe, but whether a request is sent would depend on
 * which address answers first, and a name with both public and private addresses is an attack or a mistake that should be noticed.
 * `localhost` is the exception: it always has two addresses, and the operator may have allowed only one.
 *
 * If the operator has an outbound proxy, public addresses are reached through it (proxy.ts): step 3 is then a CONNECT to one of the
 * addresses, and step 4 is up to the proxy.
 *
 * The connect timeout covers everything from the look-up to the end of the TLS handshake.
 */
import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { buildConnector } from 'undici';
import { OVER } from '../lib/aborted.ts';
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

/** How long one address of several is tried before the next. Round trips of a second are rare. */
const ADDRESS_ATTEMPT_TIMEOUT_MS = 1000;

/** How long a connection is idle before the system probes the other end. */
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
  /** The proxy for public addresses. */
  readonly proxy?: EgressProxy;
  /** Certificate authorities (PEM) instead of the ones that Node trusts. */
  readonly ca?: string;
  /** Opens the TCP connection: `net.connect`, except in tests of step 4. */
  readonly open?: (options: TcpNetConnectOpts) => Socket;
}

/** A connector for undici's `connect` option. Its callback gets a socket that is ready for use, or an `EgressError`. */
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
  const timer = setTimeout(() => late.abort(OVER), connectTimeoutMs);
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
    // Replaces DNS, so that Node tries only the checked addresses, one after the other.
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

/** The proxy's own address is not checked, because the operator chose it. */
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
