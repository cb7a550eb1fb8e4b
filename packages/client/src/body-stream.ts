/** The body of an answer, piece by piece as it comes. */
import { SignalboxError } from './errors.ts';
import type { Sleep } from './time.ts';
import { connectionError, type OpenResponse } from './transport.ts';

/** Three missed comments of a stream: the connection is dead, whatever the network says. */
const silenceMs = 30_000;
/** Silence is looked for this often, rather than by a timer for each piece that arrives. */
const silenceTickMs = 10_000;

/**
 * Ends with the body and gives the connection back, also when the reader stops.
 *
 * @throws ConnectionError where it breaks off, or nothing is heard for 30 s
 */
export async function* pieces(connection: OpenResponse, sleep: Sleep): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = (connection.response.body as ReadableStream<Uint8Array>).getReader();
  const watch = new AbortController();
  // While the reader of these pieces is busy, nobody listens: that is not silence.
  let listening = true;
  let heard = true;
  let silent = false;
  const watchSilence = async () => {
    for (let quietMs = 0; quietMs < silenceMs; quietMs = heard || !listening ? 0 : quietMs + silenceTickMs) {
      heard = false;
      await sleep(silenceTickMs, watch.signal);
    }
    silent = true;
    connection.close();
  };
  watchSilence().catch(() => {});
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      heard = true;
      listening = false;
      yield value;
      listening = true;
      heard = true;
    }
  } catch (error) {
    if (error instanceof SignalboxError) throw error;
    throw connectionError(silent ? new Error(`nothing was heard for ${silenceMs} ms`) : error);
  } finally {
    watch.abort();
    connection.close();
  }
}

/** The lines of a text in UTF-8, without their ends; a last one need not end. Throws where it is not UTF-8. */
export async function* linesIn(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const piece of bytes) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield line;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}
