// One request as bytes on a connection of its own, and what came back: no client between that would mend or refuse what is
// sent.
import { once } from 'node:events';
import { connect } from 'node:net';

export interface WireRequest {
  method: string;
  /** As it stands in the request line. */
  target: string;
  headers: readonly (readonly [string, string])[];
  body?: Uint8Array | undefined;
  /** The body is shorter than the headers say, and nothing more will come: no answer is due. */
  isCut: boolean;
}

export interface WireAnswer {
  status: number;
  /** By their lower-case names. */
  headers: ReadonlyMap<string, string>;
  text: string;
  /** All of it, as it came. */
  whole: string;
}

/** Not a time that is measured: only what is hanging is ended by it. A long poll may take 20 s. */
const HANGS_AFTER_MS = 40_000;
/** How long a stream is listened to after its first bytes: what is there already comes at once. */
const STREAM_PEEK_MS = 5;

/** The answer; undefined where the connection was ended without one. Throws where neither comes. */
export async function exchange(port: number, request: WireRequest): Promise<WireAnswer | undefined> {
  const socket = connect({ port, host: '127.0.0.1' });
  // A server that has refused a long body does not read the rest.
  socket.on('error', () => {});
  const { promise: hangs, reject: hang } = Promise.withResolvers<never>();
  const hung = setTimeout(() => hang(new Error(`No answer within ${HANGS_AFTER_MS / 1000} s`)), HANGS_AFTER_MS);
  const closed = once(socket, 'close').catch(() => {});
  let bytes = Buffer.alloc(0);
  socket.on('data', (part: Buffer) => {
    bytes = Buffer.concat([bytes, part]);
    const answer = answerOf(bytes, request.method);
    if (answer?.isWhole) socket.destroy();
    if (answer?.headers.get('content-type')?.startsWith('text/event-stream')) {
      setTimeout(() => socket.destroy(), STREAM_PEEK_MS);
    }
  });
  if (request.isCut) socket.end(bytesOf(request));
  else socket.write(bytesOf(request));
  try {
    await Promise.race([closed, hangs]);
  } finally {
    clearTimeout(hung);
    socket.destroy();
  }
  return answerOf(bytes, request.method);
}

function bytesOf({ method, target, headers, body }: WireRequest): Buffer {
  const head = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), '', ''];
  return Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), body ?? Buffer.alloc(0)]);
}

/** Undefined where the headers have not come whole. */
function answerOf(bytes: Buffer, method: string): (WireAnswer & { isWhole: boolean }) | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const [, digits] = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine) ?? [];
  if (digits === undefined) throw new Error(`Not an HTTP answer: ${bytes.toString('latin1').slice(0, 200)}`);
  const status = Number(digits);
  const rest = bytes.subarray(end + 4);
  // "Go on and send", and then the answer itself.
  if (status === 100) return answerOf(rest, method);
  const headers = new Map(
    lines.map((line) => [line.split(':', 1)[0]!.toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  const length = method === 'HEAD' || status === 204 ? 0 : Number(headers.get('content-length') ?? Number.NaN);
  const body = isChunked ? joined(rest) : rest.subarray(0, Number.isNaN(length) ? rest.length : length);
  const isWhole = isChunked ? rest.subarray(-5).toString() === '0\r\n\r\n' : rest.length >= length;
  return { status, headers, text: body.toString(), whole: bytes.toString(), isWhole };
}

/** Without the lengths between; up to where it was cut off. */
function joined(chunked: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < chunked.length; ) {
    const lineEnd = chunked.indexOf('\r\n', at);
    const length = lineEnd < 0 ? 0 : Number.parseInt(chunked.subarray(at, lineEnd).toString(), 16);
    if (!(length > 0)) break;
    parts.push(chunked.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
  }
  return Buffer.concat(parts);
}
