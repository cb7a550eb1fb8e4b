/** Parses Server-Sent Events (WHATWG HTML, section 9.2). */

export interface ServerSentEvent {
  /** The `event` field; `message` if there is none. */
  event: string;
  /** The `data` lines, joined by line feeds. Empty if there are none, but an `id`. */
  data: string;
  /** Its `id` field. */
  id?: string;
}

/**
 * Accepts bytes as they arrive, cut anywhere. An event that is incomplete when the bytes end is never returned: it is sent
 * again when the stream resumes.
 */
export class EventParser {
  readonly #decoder = new TextDecoder();
  #line = '';
  #afterCarriageReturn = false;
  #event = '';
  #data: string[] = [];
  #id: string | undefined;

  /** The events that end within these bytes. */
  *push(bytes: Uint8Array): Generator<ServerSentEvent, void, undefined> {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return;
    if (this.#afterCarriageReturn && text.startsWith('\n')) text = text.slice(1);
    this.#afterCarriageReturn = text.endsWith('\r');

    let start = 0;
    for (const { 0: end, index } of text.matchAll(/\r\n|\n|\r/g)) {
      const event = this.#endLine(this.#line + text.slice(start, index));
      this.#line = '';
      start = index + end.length;
      if (event) yield event;
    }
    this.#line += text.slice(start);
  }

  #endLine(line: string): ServerSentEvent | undefined {
    if (line === '') return this.#endEvent();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    // ReconnectBackoff decides on pauses, so `retry` is not needed.
    if (field === 'event') this.#event = value;
    if (field === 'data') this.#data.push(value);
    if (field === 'id') this.#id = value;
    return undefined;
  }

  #endEvent(): ServerSentEvent | undefined {
    const [event, data, id] = [this.#event || 'message', this.#data, this.#id];
    this.#event = '';
    this.#data = [];
    this.#id = undefined;
    if (data.length === 0 && id === undefined) return undefined;
    return { event, data: data.join('\n'), ...(id !== undefined && { id }) };
  }
}
