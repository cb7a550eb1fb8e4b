/**
 * The operator's outbound proxy (`SIGNALBOX_EGRESS_PROXY`), by CONNECT alone, for http as for https.
 *
 * The proxy is told an address and never a name: names are looked up and judged here, as without a proxy, and what was
 * judged is what it is asked to connect to. So a name that changes its answer, or that the proxy would resolve otherwise,
 * leads nowhere else. What can't be seen from here is the address that the proxy really connects to: that it takes the
 * one it was told is the operator's word. A proxy that takes names alone will not do.
 *
 * Only public addresses go through it. The private ones that the operator opened are of this network, and the same
 * numbers may mean something else where the proxy stands (its own loopback, for one): they are connected to directly.
 */
import { request } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { EgressError } from './errors.ts';
import { type Deadline, withDeadline } from './sockets.ts';

/** Where it is, and who we are to it. */
export interface EgressProxy {
  readonly protocol: 'http:' | 'https:';
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; undefined where the operator gave no user. */
  readonly authorization: string | undefined;
}

/** Proxies answer CONNECT with a few lines. */
const MAX_ANSWER_HEADER_BYTES = 16 * 1024;

/** Reads `SIGNALBOX_EGRESS_PROXY`. Throws an Error, which does not show the text: it may hold a password. */
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

/** Asks the proxy at the other end of `socket` for a connection to this address, and gives the socket back as that. */
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
            if (statusCode < 200 || statusCode > 299) refuse(`the proxy answered CONNECT with ${statusCode}`);
            // Nobody was asked anything yet: whoever speaks first is not an HTTP server, and may be the proxy itself.
            else if (head.length > 0) refuse('the proxy sent something after its answer to CONNECT');
            else resolve(socket);
          })
          // Whatever is not an answer to CONNECT.
          .on('error', (error) => refuse(`the proxy broke off: ${error.message}`))
          .end();
      }),
  ).catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
}
