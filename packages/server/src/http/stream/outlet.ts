// What the events of a stream are written to: the connection itself, once the headers are sent.
//
// node:http keeps a parser, a request and a response for each connection, and Fastify a request and a reply: 20 KB for a stream that
// needs none of them for hours. The response to a stream is the last one of its connection (`Connection: close`), so nothing has to be
// parsed there any more. node:http releases all of it when its socket emits `close`, so the socket emits that here, and stays open.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Outlet {
  /** Emits `drain` and `close`. */
  readonly channel: ServerResponse | Socket;
  /** The channel, if it was taken from node:http. */
  readonly connection?: Socket;
  /** False if the channel says to wait until it has drained. */
  write(part: string | Uint8Array): boolean;
  /** After what was written. */
  end(): void;
}

/** A response whose headers were just flushed. Its connection is taken if it can be; then the response is closed for all who watch it. */
export function outletOf(response: ServerResponse): Outlet {
  const connection = takeConnection(response);
  return connection ? new ChunkedOutlet(connection) : new ResponseOutlet(response);
}

/** Undefined if something else is still to come on the connection, or the response is not chunked (HTTP/1.0). */
function takeConnection(response: ServerResponse): Socket | undefined {
  const { req: request, socket } = response;
  if (!socket || socket.destroyed || !response.chunkedEncoding) return undefined;
  // node:http destroys the connection of requests that have not ended: this one, if its body is still arriving, or one that follows.
  const { parser } = socket as { parser?: { incoming?: IncomingMessage | null } | null };
  if (!request.complete || !request.readableEnded || parser?.incoming !== request) return undefined;
  socket.emit('close', false);
  response.detachSocket(socket);
  socket.removeAllListeners();
  socket.on('error', ignore).on('end', closeSoon);
  // What the client sends is dropped, but it is noticed when it leaves.
  socket.resume();
  return socket;
}

function ignore(): void {}

function closeSoon(this: Socket): void {
  this.destroySoon();
}

/** Writes the chunked transfer coding (RFC 9112, section 7.1). */
class ChunkedOutlet implements Outlet {
  readonly connection: Socket;

  constructor(connection: Socket) {
    this.connection = connection;
  }

  get channel(): Socket {
    return this.connection;
  }

  write(part: string | Uint8Array): boolean {
    const { connection } = this;
    const size = Buffer.byteLength(part).toString(16);
    if (typeof part === 'string') return connection.write(`${size}\r\n${part}\r\n`);
    connection.cork();
    connection.write(`${size}\r\n`);
    connection.write(part);
    const hasRoom = connection.write('\r\n');
    connection.uncork();
    return hasRoom;
  }

  end(): void {
    const { connection } = this;
    if (!connection.writable) return;
    connection.write('0\r\n\r\n');
    connection.destroySoon();
  }
}

export class ResponseOutlet implements Outlet {
  readonly channel: ServerResponse;

  constructor(channel: ServerResponse) {
    this.channel = channel;
  }

  write(part: string | Uint8Array): boolean {
    return this.channel.write(part);
  }

  end(): void {
    this.channel.end();
  }
}
