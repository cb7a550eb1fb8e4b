/** Opens responses of Server-Sent Events, and reads envelopes in them. */
import { readBody } from './body-stream.ts';
import { SignalboxError } from './errors.ts';
import { EventParser, type ServerSentEvent } from './sse.ts';
import type { OpenResponse, RequestOptions, Transport } from './transport.ts';
import type { Envelope } from './types.generated.ts';

/** The changes whose response the client reads as a stream. */
export type StreamedChange = 'openSession' | 'sendMessage';

/** @throws SignalboxError `unexpected_response` if the response is not of events (204 is: there are none) */
export async function openEvents<N extends 'streamSession' | 'streamEnvironment' | StreamedChange>(
  transport: Transport,
  route: N,
  input: Parameters<typeof transport.open<N>>[1],
  options: RequestOptions,
): Promise<OpenResponse> {
  const connection = await transport.open(route, input, options, { accept: 'text/event-stream' });
  const { status, headers } = connection.response;
  const type = headers.get('content-type') ?? '';
  if (status === 204 || /^text\/event-stream\b/i.test(type)) return connection;
  connection.close();
  throw new SignalboxError({
    status,
    code: 'unexpected_response',
    detail: `The response is not an event stream but ${type || 'has no content type'}: does a proxy rewrite it?`,
    requestId: headers.get('x-request-id'),
    headers,
  });
}

/** The events of a response, until it ends. Closes the connection, also if the reader stops early. */
export async function* eventsIn(
  connection: OpenResponse,
  { sleep }: Pick<Transport, 'sleep'>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const parser = new EventParser();
  for await (const bytes of readBody(connection, sleep)) yield* parser.push(bytes);
}

export function envelopeIn(event: Pick<ServerSentEvent, 'data'>): Envelope {
  return dataOf<Envelope>(event);
}

/** The data of an event. */
export function dataOf<T>({ data }: Pick<ServerSentEvent, 'data'>): T {
  try {
    return JSON.parse(data) as T;
  } catch {
    throw new SignalboxError({
      status: 200,
      code: 'unexpected_response',
      detail: 'An event of the stream is not JSON',
    });
  }
}
