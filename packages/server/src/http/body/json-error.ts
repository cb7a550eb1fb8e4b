// Finds where a text stops being valid JSON. The engine's parser reports it only for some texts, and quotes them; a body may contain
// secrets.

type Expected = 'value' | 'firstItem' | 'firstKey' | 'key' | 'colon' | 'next';

const isSpace = (c: string | undefined) => c === ' ' || c === '\n' || c === '\r' || c === '\t';

/** The index of the first invalid character, or the length of a text that ends too early; undefined for JSON. */
export function jsonErrorIndex(text: string): number | undefined {
  /** The closing characters of what is open. */
  const open: ('}' | ']')[] = [];
  let expected: Expected = 'value';
  // A byte order mark at the start is skipped, as by the parser.
  let at = text.startsWith('\ufeff') ? 1 : 0;
  for (;;) {
    while (isSpace(text[at])) at += 1;
    const c = text[at];
    if (expected === 'next' && open.length === 0) return c === undefined ? undefined : at;
    if (expected === 'colon') {
      if (c !== ':') return at;
      expected = 'value';
      at += 1;
    } else if (expected === 'next' && c === ',') {
      expected = open.at(-1) === '}' ? 'key' : 'value';
      at += 1;
    } else if (c === open.at(-1) && c !== undefined && ['next', 'firstItem', 'firstKey'].includes(expected)) {
      open.pop();
      expected = 'next';
      at += 1;
    } else if (expected === 'next') {
      return at;
    } else if (expected === 'key' || expected === 'firstKey') {
      const end = stringEnd(text, at);
      if (end === undefined) return at;
      expected = 'colon';
      at = end;
    } else if (c === '{' || c === '[') {
      open.push(c === '{' ? '}' : ']');
      expected = c === '{' ? 'firstKey' : 'firstItem';
      at += 1;
    } else {
      const end = c === '"' ? stringEnd(text, at) : wordEnd(text, at);
      if (end === undefined) return at;
      expected = 'next';
      at = end;
    }
  }
}

/** The index after the string that begins here; undefined if it does not end. */
export function stringEnd(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  for (let at = start + 1; at < text.length; at += 1) {
    const c = text[at]!;
    if (c === '"') return at + 1;
    if (c < ' ') return undefined;
    if (c !== '\\') continue;
    at += 1;
    if (text[at] === 'u') {
      if (!/^[\dA-Fa-f]{4}$/.test(text.slice(at + 1, at + 5))) return undefined;
      at += 4;
    } else if (!'"\\/bfnrt'.includes(text[at] ?? ' ')) {
      return undefined;
    }
  }
  return undefined;
}

/** The index after the number, `true`, `false` or `null` that begins here. */
function wordEnd(text: string, start: number): number | undefined {
  const word = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
  word.lastIndex = start;
  return word.test(text) ? word.lastIndex : undefined;
}

/** `line 3, column 7`, both from 1. */
export function placeOf(text: string, index: number): string {
  let [line, lineStart] = [1, 0];
  for (let end = text.indexOf('\n'); end !== -1 && end < index; end = text.indexOf('\n', lineStart)) {
    line += 1;
    lineStart = end + 1;
  }
  let column = 1;
  for (let at = lineStart; at < index; column += 1) at += text.codePointAt(at)! > 0xff_ff ? 2 : 1;
  return `line ${line}, column ${column}`;
}
