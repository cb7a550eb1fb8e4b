/** Opens responses of Server-Sent Events, and reads envelopes in them. */
import { SignalboxError } from './errors.ts';
import type { ServerSentEvent } from './sse.ts';
import type { OpenResponse, RequestOptions, Transport } from './transport.ts';
import type { Envelope } from './types.generated.ts';

/** @throws SignalboxError `unexpected_response` if the response is not of events (204 is: there are none) */
export async function openEvents<N extends 'streamSession' | 'streamEnvironment'>(
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

export function envelopeIn({ data }: Pick<ServerSentEvent, 'data'>): Envelope {
  try {
    return JSON.parse(data) as Envelope;
  } catch {
    throw new SignalboxError({
      status: 200,
      code: 'unexpected_response',
      detail: 'An event of the stream is not JSON',
    });
  }
}
