// The events of a provider's response, before its package parses them.
//
// The packages are strict: one odd type in a field that nothing needs, and a response that was paid for would be lost. So each event is
// first made what the package takes (`EventReader`, one for each format). Errors are found here too, in whatever form they come: some
// servers send one with status 200, as JSON, or in the middle of a stream; and some send the whole response as JSON although a stream
// was requested.
import { createEventLines } from '../../lib/event-lines.ts';
import { parseJson } from '../../lib/json/json.ts';
import type { Ran } from '../../session-rows/ran.ts';
import { ModelFailure } from '../model/model.ts';
import { errorInEvent, type ProviderError } from '../model/provider-error.ts';

/** Makes the events of one response what the provider's package takes. Never throws, whatever it gets. */
export interface EventReader {
  /** What the package gets instead of an event: usually one, and none for one that clients should pass over. */
  event(event: unknown): readonly unknown[];
  /** What it gets before the end of the stream. `isDone`: the server has sent `[DONE]`. */
  end?(isDone: boolean): readonly unknown[];
  /** Whether the events so far are a whole response. Default: only `[DONE]` says so. */
  isOver?(): boolean;
  /** What the provider ran itself, as far as the events have said it. Default: nothing. */
  ran?(): Ran;
  /** How many searches of the web the provider ran, as it charges for them. Default: none. */
  webSearches?(): number;
  /** The events of a whole response. Undefined: it is none. */
  whole(body: unknown): readonly unknown[] | undefined;
}

/** The stream for the package. `onError` gets the first error of the provider, after the events before it have been passed on. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  reader: EventReader,
  onError: (error: ProviderError) => void,
  sleep: (ms: number) => Promise<void>,
): Promise<ReadableStream<Uint8Array>> {
  const { first, stream } = await peek(body);
  if (first === '<') {
    throw new ModelFailure(
      'model_protocol',
      'The model’s server responded with a page (HTML) instead of a response: check the base URL of the model',
      { retryable: true },
    );
  }
  if (first !== '{' && first !== '[') return createEvents(stream, reader, onError, sleep);
  const events = eventsOf(parseJson(await new Response(stream).text()), reader, onError);
  if (events === undefined) {
    throw new ModelFailure('model_protocol', 'The model responded with JSON that is no response of its provider', {
      retryable: true,
    });
  }
  return new Blob(events.map(toLines)).stream();
}

/** Google sends a list of what would be events. */
function eventsOf(
  body: unknown,
  reader: EventReader,
  onError: (error: ProviderError) => void,
): readonly unknown[] | undefined {
  const parts = Array.isArray(body) ? body : [body];
  const error = parts.map(errorInEvent).find((one) => one !== undefined);
  if (error) {
    onError(error);
    return [ERROR];
  }
  const events = parts.map((part) => reader.whole(part));
  if (events.length === 0 || events.includes(undefined)) return undefined;
  return [
    ...events.flatMap((some) => some ?? []).flatMap((event) => reader.event(event)),
    ...(reader.end?.(true) ?? []),
  ];
}

/** Any package reports it as an error of the stream, for which the connection then has the failure. */
const ERROR = { type: 'error', error: { type: 'error', message: 'error' } };

function toLines(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Passes on the data of the events, one line each: the package ignores the rest. */
function createEvents(
  stream: ReadableStream<Uint8Array>,
  reader: EventReader,
  onError: (error: ProviderError) => void,
  sleep: (ms: number) => Promise<void>,
): ReadableStream<Uint8Array> {
  const upstream = stream.getReader();
  const lines = createLines();
  const encoder = new TextEncoder();
  let isDone = false;
  let hasFailed = false;

  function* read(text: string): Generator<string> {
    if (text === '' || hasFailed) return;
    if (DONE.test(text)) {
      isDone = true;
      return;
    }
    // Words between the events, such as "ping".
    if (!/^[{[]/.test(text)) return;
    const value = parseJson(text);
    if (value === undefined) {
      // Something is missing then: the package reports it.
      yield `data: ${text.replaceAll('\n', ' ')}\n\n`;
      return;
    }
    for (const one of Array.isArray(value) ? value : [value]) {
      const error = errorInEvent(one);
      if (error) {
        hasFailed = true;
        onError(error);
        yield toLines(ERROR);
        return;
      }
      for (const made of reader.event(one)) yield toLines(made);
    }
  }

  /** Undefined: the stream is over. */
  async function next(): Promise<Uint8Array | undefined> {
    const isOver = isDone || reader.isOver?.() === true;
    try {
      const read = upstream.read();
      if (!isOver) return (await read).value;
      // The response is whole, but some servers keep the connection open, or reset it.
      const ended = read.then(({ value }) => value);
      return await Promise.race([ended, sleep(END_MAX_MS).then(() => undefined)]);
    } catch (error) {
      if (isOver) return undefined;
      throw error;
    }
  }

  return new ReadableStream({
    async pull(controller) {
      while (true) {
        const chunk = await next();
        const made = (chunk ? lines.push(chunk) : lines.end()).flatMap((text) => [...read(text)]);
        if (!chunk && !hasFailed) made.push(...(reader.end?.(isDone) ?? []).map(toLines));
        if (made.length > 0) controller.enqueue(encoder.encode(made.join('')));
        if (!chunk) return controller.close();
        if (made.length > 0) return;
      }
    },
    cancel: (reason) => upstream.cancel(reason),
  });
}

const DONE = /^\[?DONE\]?$/i;

/** How long the end of a connection may take after the end of its response. Without it, the connection can't be used again. */
const END_MAX_MS = 1_000;

/** The data of each event. */
function createLines(): { push(chunk: Uint8Array): string[]; end(): string[] } {
  const meaningful = createEventLines();
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];

  function* read(lines: readonly string[]): Generator<string> {
    for (const line of lines) {
      if (line.startsWith('data')) {
        data.push(dataOf(line));
      } else if (line === '' && data.length > 0) {
        yield data.join('\n').trim();
        data = [];
      }
    }
  }

  return {
    push(chunk) {
      const lines = decoder.decode(meaningful(chunk), { stream: true }).split('\n');
      // Only what is new is searched: a line may be as long as the response, and come in many pieces.
      lines[0] = rest + lines[0]!;
      rest = lines.pop()!;
      return [...read(lines)];
    },
    end() {
      // The last event may lack its empty line. It may also be cut off, which the package finds by what is missing then.
      return [...read([rest, ''])].filter((text) => DONE.test(text) || parseJson(text) !== undefined);
    },
  };
}

function dataOf(line: string): string {
  return line.slice('data:'.length).replace(/^ /, '');
}

/** The first character that is not white space, and the whole stream. */
async function peek(
  body: ReadableStream<Uint8Array>,
): Promise<{ first: string | undefined; stream: ReadableStream<Uint8Array> }> {
  const reader = body.getReader();
  const begin: Uint8Array[] = [];
  let first: string | undefined;
  while (first === undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    begin.push(value);
    [first] = Buffer.from(value)
      .toString('latin1')
      .replace(/^[\s\u00ef\u00bb\u00bf]+/, '');
  }
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const value = begin.shift() ?? (await reader.read()).value;
      if (value === undefined) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { first, stream };
}
