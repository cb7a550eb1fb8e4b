// The addresses at which a node listens.
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../config/config.ts';
import { StartError } from './start-error.ts';

/** Another program listens there, or the address does not belong to this machine. */
class CannotListen extends StartError {
  override readonly name = 'CannotListen';
  constructor(host: string, port: number, cause: NodeJS.ErrnoException) {
    super(`Cannot listen on ${host}:${port}: ${reasons[cause.code ?? ''] ?? cause.message}`, { cause });
  }
}

const reasons: Record<string, string> = {
  EADDRINUSE:
    'the port is in use. Stop the program that uses it, or choose another port with --port (0 selects any free port).',
  EADDRNOTAVAIL: 'this machine has no such address. Choose another with --host.',
  ENOTFOUND: 'there is no such host. Choose an address of this machine with --host.',
  EACCES: 'this user is not allowed to use the port. Choose one above 1023 with --port.',
};

/**
 * Throws `StartError` if the node could not listen, before it creates a database. It does not keep the ports: a load balancer would
 * connect to a node that is not ready.
 */
export async function requireFreePorts({ roles, host, port, metricsPort }: Config): Promise<void> {
  for (const wanted of [...(roles.has('api') ? [port] : []), ...(metricsPort === undefined ? [] : [metricsPort])]) {
    const server = createServer();
    await explained(host, wanted, once(server.listen({ host, port: wanted }), 'listening'));
    await new Promise((done) => server.close(done));
  }
}

interface Server {
  listen(options: { host: string; port: number }): Promise<number>;
}

/** Returns the port. */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return explained(host, port, server.listen({ host, port }));
}

function explained<T>(host: string, port: number, listening: Promise<T>): Promise<T> {
  return listening.catch((error: NodeJS.ErrnoException) => {
    throw error.syscall ? new CannotListen(host, port, error) : error;
  });
}

/** The address that a client on this machine uses for a listening address. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
