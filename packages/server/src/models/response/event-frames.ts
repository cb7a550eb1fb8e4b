// Responses in the binary frames of AWS, `application/vnd.amazon.eventstream`, as lines of events and back. So they are read like all
// other responses, and the provider's package gets what it takes.
import type { EventStreamCodec } from '@smithy/eventstream-codec';
import { parseJson } from '../../lib/json/json.ts';
import { ModelFailure } from '../model/model.ts';
import { isRecord } from '../model/provider-error.ts';

/** How a response is framed: its bytes as lines of events, and those lines as the provider's package reads them. */
export interface Framing {
  readonly contentType: string;
  decode(): TransformStream<Uint8Array, Uint8Array>;
  encode(): TransformStream<Uint8Array, Uint8Array>;
}

/** The package is imported with the first call. `lastEvent`: without it the response is incomplete. */
export async function eventFrames(lastEvent: string): Promise<Framing> {
  const { EventStreamCodec: Codec } = await import('@smithy/eventstream-codec');
  const codec = new Codec(
    (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
    (text) => Buffer.from(text),
  );
  return {
    contentType: 'application/vnd.amazon.eventstream',
    decode: () => decoder(codec),
    encode: () => encoder(codec, lastEvent),
  };
}

/** The length of a frame is in its first four bytes. A longer one would be no event of a model. */
const FRAME_MAX_BYTES = 8 * 1024 * 1024;

function decoder(codec: EventStreamCodec): TransformStream<Uint8Array, Uint8Array> {
  let rest: Buffer = Buffer.alloc(0);
  /** A page, or a whole response in JSON. A frame begins with its length, so with a zero. */
  let isText: boolean | undefined;

  /** An event's type is the only field of what the package reads. */
  function eventIn(frame: Buffer): object | undefined {
    const { headers, body } = codec.decode(frame);
    const header = (name: string) => String(headers[`:${name}`]?.value ?? '');
    const payload = parseJson(Buffer.from(body).toString('utf8'));
    switch (header('message-type')) {
      case 'event':
        return { [header('event-type')]: payload };
      case 'exception':
        return { type: 'error', error: { ...(isRecord(payload) && payload), type: header('exception-type') } };
      case 'error':
        return { type: 'error', error: { message: header('error-message'), type: header('error-code') } };
      default:
        return undefined;
    }
  }

  return new TransformStream({
    transform(chunk, controller) {
      isText ??= chunk.length > 0 ? chunk[0] !== 0 : undefined;
      if (isText) return controller.enqueue(chunk);
      rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
      while (rest.length >= 4) {
        const length = rest.readUInt32BE(0);
        if (length < 16 || length > FRAME_MAX_BYTES) throw notFrames();
        if (rest.length < length) return;
        const event = eventIn(rest.subarray(0, length));
        rest = rest.subarray(length);
        if (event) controller.enqueue(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
      }
    },
  });
}

function encoder(codec: EventStreamCodec, lastEvent: string): TransformStream<Uint8Array, Uint8Array> {
  let isWhole = false;
  return new TransformStream({
    transform(chunk, controller) {
      for (const text of Buffer.from(chunk).toString('utf8').split('\n\n')) {
        if (text === '') continue;
        const event = parseJson(text.slice('data: '.length));
        const [type, payload] = (isRecord(event) && Object.entries(event)[0]) || [];
        if (type === undefined || !isRecord(payload)) throw notFrames();
        isWhole ||= type === lastEvent;
        const body = Buffer.from(JSON.stringify(payload));
        controller.enqueue(
          codec.encode({
            headers: {
              ':message-type': { type: 'string', value: 'event' },
              ':event-type': { type: 'string', value: type },
            },
            body,
          }),
        );
      }
    },
    flush() {
      if (!isWhole) throw interrupted();
    },
  });
}

function notFrames(): ModelFailure {
  return new ModelFailure('model_protocol', 'The model’s response is not in its provider’s format', {
    retryable: true,
  });
}

function interrupted(): ModelFailure {
  return new ModelFailure('model_unavailable', 'The model’s stream was interrupted', { retryable: true });
}
