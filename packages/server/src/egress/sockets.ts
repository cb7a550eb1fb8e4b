// The steps of opening a connection. Each ends before the common deadline, or destroys its socket.
import { isIP, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { onceAborted } from '../lib/aborted.ts';
import { EgressError, stageError } from './errors.ts';

/** The deadline of a connection attempt, from the look-up to the end of the TLS handshake. */
export interface Deadline {
  readonly signal: AbortSignal;
  readonly ms: number;
}

/** Waits for the socket's `event`, then for `finish`; destroys the socket if either fails or the deadline passes. */
export function settled(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  stage: 'connect' | 'tls',
  deadline: Deadline,
  finish: () => Socket,
): Promise<Socket> {
  return withDeadline(
    deadline.signal,
    () => new EgressError('connect_timeout', `no connection within ${deadline.ms} ms`),
    () =>
      new Promise<Socket>((resolve, reject) => {
        // Stays for the life of the socket: below TLS there is no other listener, and an 'error' without one ends the process.
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

/** Starts TLS on a connection. The certificate must be valid for `host`, a name or an address. */
export function startTls(tcp: Socket, host: string, ca: string | undefined, deadline: Deadline): Promise<Socket> {
  const socket = tlsConnect({
    socket: tcp,
    host,
    // SNI allows only names.
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment does not disable it.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  });
  return settled(socket, 'secureConnect', 'tls', deadline, () => socket);
}

/** Rejects with `late()` if the deadline passes before the work is done. Does not stop the work. */
export function withDeadline<T>(deadline: AbortSignal, late: () => EgressError, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onceAborted(deadline, () => reject(late()));
    work().then(resolve, reject).finally(forget);
  });
}
