// Sends one request as bytes on its own connection and reads the response, without a client that would fix or refuse the
// request.
import { once } from 'node:events';
import { connect } from 'node:net';

export interface WireRequest {
  method: string;
  /** As it is in the request line. */
  target: string;
  headers: readonly (readonly [string, string])[];
  body?: Uint8Array | undefined;
  /** The body is shorter than the headers say, and nothing follows: no response is due. */
  isCut: boolean;
}

export interface WireAnswer {
  status: number;
  /** By lower-case names. */
  headers: ReadonlyMap<string, string>;
  text: string;
  /** The complete response, unparsed. */
  whole: string;
}

/** Not a measurement: it only ends what hangs. A long poll may take 20 s. */
const HANGS_AFTER_MS = 40_000;
/** How long a stream is read after its first bytes: existing data arrives at once. */
const STREAM_PEEK_MS = 5;

/** The response; undefined if the connection ended without one. Throws if neither happens. */
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

/** Undefined until the headers are complete. */
function answerOf(bytes: Buffer, method: string): (WireAnswer & { isWhole: boolean }) | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const [, digits] = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine) ?? [];
  if (digits === undefined) throw new Error(`Not an HTTP answer: ${bytes.toString('latin1').slice(0, 200)}`);
  const status = Number(digits);
  const rest = bytes.subarray(end + 4);
  // 100 Continue, and then the response itself.
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

/** Without the chunk lengths; up to the point where it was cut off. */
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
