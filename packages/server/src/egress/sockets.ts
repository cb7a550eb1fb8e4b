// The steps of opening a connection, each of which ends by the same deadline or takes its socket with it.
import { isIP, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { onceAborted } from '../lib/aborted.ts';
import { EgressError, stageError } from './errors.ts';

/** The time that a connection has, from the look-up to the end of the TLS handshake. */
export interface Deadline {
  readonly signal: AbortSignal;
  readonly ms: number;
}

/** Waits for the socket's `event`, then for `finish`; destroys the socket where either fails or the deadline comes first. */
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

/** Speaks TLS over a connection; the certificate has to be good for `host`, be it a name or an address. */
export function startTls(tcp: Socket, host: string, ca: string | undefined, deadline: Deadline): Promise<Socket> {
  const socket = tlsConnect({
    socket: tcp,
    host,
    // Only names may be sent ahead (SNI).
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Said, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment does not switch it off.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  });
  return settled(socket, 'secureConnect', 'tls', deadline, () => socket);
}

/** Rejects with `late()` where the deadline comes before the work is done; the work itself is not stopped. */
export function withDeadline<T>(deadline: AbortSignal, late: () => EgressError, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onceAborted(deadline, () => reject(late()));
    work().then(resolve, reject).finally(forget);
  });
}
