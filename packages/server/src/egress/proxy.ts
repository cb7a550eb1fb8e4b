/**
 * The operator's outbound proxy (`SIGNALBOX_EGRESS_PROXY`), used with CONNECT for both http and https.
 *
 * The proxy gets an address, never a name: names are looked up and checked here, as without a proxy, and the CONNECT is for the checked
 * address. A name whose address changes, or that the proxy would resolve differently, therefore leads nowhere else. That the proxy
 * connects to the address it gets can't be verified from here; the operator vouches for it. A proxy that accepts only names does not
 * work.
 *
 * Only public addresses go through the proxy. Private addresses that the operator allowed are connected to directly: they belong to
 * this network, and may mean something else in the proxy's (its own loopback, for example).
 */
import { request } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { EgressError } from './errors.ts';
import { type Deadline, withDeadline } from './sockets.ts';

/** The proxy's address and our credentials. */
export interface EgressProxy {
  readonly protocol: 'http:' | 'https:';
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; undefined if the operator set no user. */
  readonly authorization: string | undefined;
}

/** A response to CONNECT has a few lines. */
const MAX_ANSWER_HEADER_BYTES = 16 * 1024;

/** Reads `SIGNALBOX_EGRESS_PROXY`. Throws an Error that does not show the text, because it may contain a password. */
export function parseEgressProxy(text: string): EgressProxy {
  const url = URL.parse(text.trim());
  const bare = url !== null && (url.pathname === '/' || url.pathname === '') && url.search === '' && url.hash === '';
  if (!bare || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new Error('is not the URL of a proxy; use one such as http://user:password@proxy.example.com:3128');
  }
  const { protocol, hostname, port, username, password } = url;
  return {
    protocol,
    host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    authorization: username === '' && password === '' ? undefined : basic(username, password),
  };
}

function basic(username: string, password: string): string {
  try {
    return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
  } catch {
    throw new Error('has a user or password that is not correctly percent-encoded');
  }
}

/** Has the proxy at the other end of `socket` connect to this address; the socket is then that connection. */
export function openTunnel(
  { authorization }: EgressProxy,
  socket: Socket,
  { address, port }: { readonly address: string; readonly port: number },
  deadline: Deadline,
): Promise<Socket> {
  const authority = isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  return withDeadline(
    deadline.signal,
    () => new EgressError('connect_timeout', `the proxy did not connect within ${deadline.ms} ms`),
    () =>
      new Promise<Socket>((resolve, reject) => {
        const refuse = (reason: string) => reject(new EgressError('connect', reason));
        request({
          method: 'CONNECT',
          path: authority,
          headers: {
            host: authority,
            ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }),
          },
          createConnection: () => socket,
          maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
        })
          .once('connect', ({ statusCode = 0 }, _socket, head) => {
            if (statusCode < 200 || statusCode > 299) refuse(`the proxy responded to CONNECT with ${statusCode}`);
            // No request was sent yet, and an HTTP server never speaks first. This may be the proxy itself.
            else if (head.length > 0) refuse('the proxy sent something after its response to CONNECT');
            else resolve(socket);
          })
          // Includes anything that is not a response to CONNECT.
          .on('error', (error) => refuse(`the proxy broke off: ${error.message}`))
          .end();
      }),
  ).catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
}
