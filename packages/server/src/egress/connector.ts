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
 * Time runs from the look-up to the end of the TLS handshake.
 */
import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import type { buildConnector } from 'undici';
import { EgressError, stageError } from './errors.ts';
import type { Lookup } from './lookup.ts';
import {
  type Destination,
  type EgressPolicy,
  isHostListed,
  isLocalhost,
  judgeAddress,
  judgeDestination,
  LOCALHOST_ADDRESSES,
} from './policy.ts';

/** How long one address of several is tried before the next: far ends with a second of round trip are rare. */
const ADDRESS_ATTEMPT_TIMEOUT_MS = 1000;

/** How long a silent connection lasts before the system asks the other end whether it is still there. */
const TCP_KEEP_ALIVE_DELAY_MS = 60_000;

export interface ConnectorOptions {
  readonly policy: EgressPolicy;
  readonly lookup: Lookup;
  readonly connectTimeoutMs: number;
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
  const { policy, connectTimeoutMs } = options;
  assertAllowed(judgeDestination(policy, destination));
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), connectTimeoutMs);
  try {
    const addresses = await vettedAddresses(options, destination, deadline.signal);
    const socket = await openTcp(options, destination, addresses, deadline.signal);
    return destination.protocol === 'https:' ? await startTls(options, destination, socket, deadline.signal) : socket;
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
    () => new EgressError('dns', `looking up ${host} took too long`),
    async () => await lookup(host, { system }),
  ).catch((error: unknown) => {
    throw stageError('dns', error);
  });
  for (const address of answers) assertAllowed(judgeAddress(policy, address, destination));
  return answers;
}

function openTcp(
  { policy, connectTimeoutMs, open = netConnect }: ConnectorOptions,
  destination: Destination,
  addresses: readonly string[],
  deadline: AbortSignal,
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
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT_MS,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
  });
  return settled(socket, 'connect', 'connect', deadline, connectTimeoutMs, () => {
    assertAllowed(judgeAddress(policy, socket.remoteAddress ?? 'unknown', destination));
    return socket;
  });
}

function startTls(
  { ca, connectTimeoutMs }: ConnectorOptions,
  { host }: Destination,
  tcp: Socket,
  deadline: AbortSignal,
): Promise<Socket> {
  const socket = tlsConnect({
    socket: tcp,
    // The certificate is checked against the url's host, be it a name or an address; only names may be sent ahead (SNI).
    host,
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Said, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment does not switch it off.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  });
  return settled(socket, 'secureConnect', 'tls', deadline, connectTimeoutMs, () => socket);
}

/** Waits for the socket's `event`, then for `finish`; destroys the socket where either fails or the deadline comes first. */
function settled(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  stage: 'connect' | 'tls',
  deadline: AbortSignal,
  connectTimeoutMs: number,
  finish: () => Socket,
): Promise<Socket> {
  return withDeadline(
    deadline,
    () => new EgressError('connect_timeout', `no connection within ${connectTimeoutMs} ms`),
    () =>
      new Promise<Socket>((resolve, reject) => {
        // Stays for the socket's life: below TLS nobody else listens, and an unheard 'error' would end the process.
        socket.on('error', reject);
        socket.once('close', () => reject(new Error('the connection was closed')));
        socket.once(event, () => {
          try {
            resolve(finish());
          } catch (error) {
            reject(error);
          }
        });
      }),
  ).catch((error: unknown) => {
    socket.destroy();
    throw stageError(stage, error);
  });
}

function withDeadline<T>(deadline: AbortSignal, late: () => EgressError, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onLate = () => reject(late());
    if (deadline.aborted) onLate();
    deadline.addEventListener('abort', onLate, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => deadline.removeEventListener('abort', onLate));
  });
}
