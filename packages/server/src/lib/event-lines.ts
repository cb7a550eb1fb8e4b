// The lines of an event stream that mean something. A parser creates an error, with its stack, for each line that means nothing, and
// takes quadratic time for lines that end with CR alone: a few compressed kilobytes would keep the event loop busy for minutes.

const LF = 10;
const CR = 13;
const COLON = ':'.charCodeAt(0);
const BYTE_ORDER_MARK = '\xef\xbb\xbf';
const FIELDS = new Set(['data', 'event', 'id', 'retry']);
const FIELD_MAX_BYTES = 5;
const RETRY = /^retry: ?\d{1,9}$/;
const RETRY_MAX_BYTES = 16;

/**
 * A function that gets the bytes of a stream piece by piece. Returns those of fields, with the empty lines that end an event: without
 * comments and unknown fields, and with LF at the end of each line.
 */
export function createEventLines(): (piece: Uint8Array) => Uint8Array {
  /** What is known of the line: it may be a field, it has a number for `retry`, it is a field, it means nothing. */
  let line: 'name' | 'retry' | 'field' | 'nothing' = 'name';
  /** Its bytes until that is decided. */
  let start = '';
  let isAfterCr = false;
  let isFirstLine = true;

  function decide(byte: number, isEnd: boolean): typeof line {
    if (line === 'retry') {
      if (isEnd) return RETRY.test(start) ? 'field' : 'nothing';
      return start.length > RETRY_MAX_BYTES ? 'nothing' : 'retry';
    }
    if (isEnd) return start === '' || FIELDS.has(start) ? 'field' : 'nothing';
    if (byte !== COLON) return start.length > FIELD_MAX_BYTES ? 'nothing' : 'name';
    if (start === 'retry:') return 'retry';
    return FIELDS.has(start.slice(0, -1)) ? 'field' : 'nothing';
  }

  return (piece) => {
    const bytes = new Uint8Array(piece.length + RETRY_MAX_BYTES + 1);
    let length = 0;
    for (const byte of piece) {
      const isSecond = isAfterCr && byte === LF;
      isAfterCr = byte === CR;
      if (isSecond) continue;
      const isEnd = byte === LF || byte === CR;
      if (line === 'field') {
        bytes[length++] = isEnd ? LF : byte;
      } else if (line !== 'nothing') {
        if (!isEnd) start += String.fromCharCode(byte);
        if (isFirstLine && start === BYTE_ORDER_MARK) start = '';
        line = decide(byte, isEnd);
        if (line === 'field') {
          for (let at = 0; at < start.length; at += 1) bytes[length++] = start.charCodeAt(at);
          if (isEnd) bytes[length++] = LF;
        }
      }
      if (isEnd) {
        line = 'name';
        start = '';
        isFirstLine = false;
      } else if (line === 'field' || line === 'nothing') {
        start = '';
      }
    }
    return bytes.subarray(0, length);
  };
}
