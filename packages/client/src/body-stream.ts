/** The body of a response, as it arrives. */
import { SignalboxError } from './errors.ts';
import type { Sleep } from './time.ts';
import { connectionError, type OpenResponse } from './transport.ts';

/** Three missed comments of a stream: the connection is dead, even if the network does not report it. */
const silenceMs = 30_000;
/** How often silence is checked: cheaper than a timer for each part that arrives. */
const silenceTickMs = 10_000;

/**
 * Yields the parts of the body as they arrive. Closes the connection at the end, also if the reader stops early.
 *
 * @throws ConnectionError if the connection is cut, or silent for 30 s
 */
export async function* readBody(connection: OpenResponse, sleep: Sleep): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = (connection.response.body as ReadableStream<Uint8Array>).getReader();
  const watch = new AbortController();
  // While the caller processes a part, nothing is read: that is not silence.
  let reading = true;
  let received = true;
  let silent = false;
  const watchSilence = async () => {
    for (let quietMs = 0; quietMs < silenceMs; quietMs = received || !reading ? 0 : quietMs + silenceTickMs) {
      received = false;
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
      received = true;
      reading = false;
      yield value;
      reading = true;
      received = true;
    }
  } catch (error) {
    if (error instanceof SignalboxError) throw error;
    throw connectionError(silent ? new Error(`nothing was received for ${silenceMs} ms`) : error);
  } finally {
    watch.abort();
    connection.close();
  }
}

/** The lines of a UTF-8 text, without line ends; the last one may lack its own. Throws if it is not UTF-8. */
export async function* linesIn(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const part of bytes) {
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield line;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}
