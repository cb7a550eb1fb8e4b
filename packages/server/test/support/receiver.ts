// A webhook endpoint on loopback that records every POST and responds as the test decides.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Envelope } from '@signalbox/contract';

export interface Received {
  headers: IncomingHttpHeaders;
  /** The exact bytes, as text. */
  body: string;
  envelope: Envelope;
  deliveryId: string;
  attempt: number;
  previousCursor: string;
}

/** A status or a whole response; `reset` closes the connection. A promise delays the response. */
export type ReceiverResponse = number | 'reset' | { status: number; headers?: Record<string, string>; body?: string };

export interface Receiver {
  url: string;
  received: Received[];
  /** The number of POSTs without a response yet. */
  open: number;
  respond: (request: Received) => ReceiverResponse | Promise<ReceiverResponse>;
  /** Resolves with the first `count` POSTs. */
  first(count: number): Promise<Received[]>;
  close(): Promise<void>;
}

export async function createReceiver(respond: Receiver['respond'] = () => 200): Promise<Receiver> {
  const waiting = new Set<() => void>();
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    const header = (name: string) => String(request.headers[name] ?? '');
    const received: Received = {
      headers: request.headers,
      body,
      envelope: JSON.parse(body),
      deliveryId: header('x-service-delivery-id'),
      attempt: Number(header('x-service-attempt')),
      previousCursor: header('x-service-previous-cursor'),
    };
    receiver.received.push(received);
    receiver.open += 1;
    for (const check of waiting) check();
    const given = await receiver.respond(received);
    receiver.open -= 1;
    if (given === 'reset') {
      request.socket.destroy();
      return;
    }
    const { status, headers = {}, body: text = '' } = typeof given === 'number' ? { status: given } : given;
    response.writeHead(status, headers).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received: [],
    open: 0,
    respond,
    first(count) {
      return new Promise((resolve) => {
        const check = () => {
          if (receiver.received.length < count) return;
          waiting.delete(check);
          resolve(receiver.received.slice(0, count));
        };
        waiting.add(check);
        check();
      });
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return receiver;
}
