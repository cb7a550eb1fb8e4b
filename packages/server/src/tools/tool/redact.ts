// Removes the values of secrets from a server's text: each as it is, and in the encodings in which a server that quotes a request
// would show it. Other transformations by the server (hashes, reversals) cannot be undone.

declare const redacted: unique symbol;
/**
 * Text that may be shown, logged and stored: a server's text without the secrets that it was sent, or our own. Only `Redact` and
 * `trustedText` create one, so the compiler finds a server's text that was not redacted.
 */
export type Redacted = string & { readonly [redacted]: true };

export interface Redact {
  (text: string): Redacted;
  /** The length of the longest text that is replaced; 0 if none is. */
  readonly maxLength: number;
}

/** Our own text around a server's, which must have been redacted. */
export function trustedText(words: TemplateStringsArray, ...values: readonly (Redacted | number)[]): Redacted {
  return String.raw({ raw: words }, ...values) as Redacted;
}

/** `values` by name. Each value is replaced by `[secret NAME]`. */
export function createRedaction(values: Readonly<Record<string, string>>): Redact {
  const nameOf = new Map<string, string>();
  let room = ENCODED_MAX_TOTAL_CHARACTERS;
  for (const [name, value] of Object.entries(values)) {
    // Servers trim a header's value.
    for (const whole of [value, value.trim()]) {
      const encoded = whole.length > ENCODED_MAX_CHARACTERS ? [] : encodedForms(whole);
      room -= encoded.reduce((sum, form) => sum + form.length, 0);
      const forms = room < 0 ? formsOf(whole) : [...formsOf(whole), ...encoded];
      for (const form of forms) if (form !== '' && !nameOf.has(form)) nameOf.set(form, name);
    }
  }
  if (nameOf.size === 0) return Object.assign((text: string) => text as Redacted, { maxLength: 0 });
  // The longest first: a secret may begin with another. Marks are not searched.
  const forms = [...nameOf.keys()].sort((a, b) => b.length - a.length);
  const long = forms.filter((form) => form.length > LONG_CHARACTERS).map(prefixesOf);
  const short = forms.slice(long.length).map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  const pattern = short.length === 0 ? undefined : new RegExp(short.join('|'), 'g');
  const mark = (form: string) => markOf(nameOf.get(form)!);
  const withoutShort = (text: string) => (pattern ? text.replace(pattern, mark) : text);

  /** Without the forms from this one on. */
  function redact(text: string, at: number): string {
    if (at === long.length) return withoutShort(text);
    const { form } = long[at]!;
    return between(text, long[at]!)
      .map((part) => redact(part, at + 1))
      .join(mark(form));
  }
  return Object.assign((text: string) => redact(text, 0) as Redacted, { maxLength: forms[0]!.length });
}

/** What is between the occurrences of a form. The work is proportional to the length of the text, whatever the form looks like. */
function between(text: string, { form, fallback }: Pattern): string[] {
  if (!text.includes(form.slice(0, LONG_CHARACTERS))) return [text];
  const pattern: Pattern = { form, fallback, matched: 0 };
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (!advance(pattern, text.charCodeAt(at))) continue;
    parts.push(text.slice(from, at + 1 - form.length));
    from = at + 1;
    pattern.matched = 0;
  }
  return [...parts, text.slice(from)];
}

/**
 * Finds what `redact` replaces in bytes that arrive in chunks, between which it may be split. Returns whether a chunk completes one. In
 * UTF-16, there is a zero next to each of its bytes.
 */
export function createSearch(redact: Redact): (chunk: Uint8Array) => boolean {
  let tail = '';
  const has = (text: string) => redact(text) !== text;
  return (chunk) => {
    if (redact.maxLength === 0) return false;
    const text = tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1');
    tail = text.slice(Math.max(0, text.length + 1 - 2 * redact.maxLength));
    return has(text) || (text.includes('\0') && has(text.replaceAll('\0', '')));
  };
}

/** Longer forms are not searched as parts of the regular expression, whose work is proportional to the lengths of text and form. */
const LONG_CHARACTERS = 64;

function markOf(name: string): string {
  return `[secret ${name}]`;
}

export interface StreamRedaction {
  /** Takes the next piece of the text; returns what may be shown of it and of text that was kept back. */
  push(piece: string): Redacted;
  /** Returns the text that was kept back: with the end of the text, it is not the beginning of a secret. */
  end(): Redacted;
  /** Whether so many secrets were removed that the rest of the text is neither searched nor shown. */
  readonly isTooMany: boolean;
}

/** A mark can be many times as long as its secret, so without a limit a short response could become a very long one. */
const MAX_MARKS = 1000;

/**
 * Redacts a text that arrives in pieces, between which a secret may be split. Text that could be the beginning of a secret is
 * kept back until that is decided. The work is proportional to the length of the text (Knuth–Morris–Pratt for each form), however
 * it is split and however long the secret is.
 */
export function createStreamRedaction(name: string, value: string): StreamRedaction {
  const patterns = [...new Set(formsOf(value))].filter((form) => form !== '').map(prefixesOf);
  let kept = '';
  let found = 0;
  return {
    push(piece) {
      if (found > MAX_MARKS) return '' as Redacted;
      const text = kept + piece;
      let shown = '';
      let shownTo = 0;
      for (let at = kept.length; at < text.length; at += 1) {
        let whole = 0;
        for (const pattern of patterns) if (advance(pattern, text.charCodeAt(at))) whole = pattern.form.length;
        if (whole === 0) continue;
        shown += text.slice(shownTo, at + 1 - whole) + markOf(name);
        shownTo = at + 1;
        found += 1;
        if (found > MAX_MARKS) return '' as Redacted;
        for (const pattern of patterns) pattern.matched = 0;
      }
      const open = patterns.reduce((most, { matched }) => Math.max(most, matched), 0);
      shown += text.slice(shownTo, text.length - open);
      kept = text.slice(text.length - open);
      return shown as Redacted;
    },
    end() {
      const rest = kept as Redacted;
      kept = '';
      for (const pattern of patterns) pattern.matched = 0;
      return rest;
    },
    get isTooMany() {
      return found > MAX_MARKS;
    },
  };
}

interface Pattern {
  readonly form: string;
  /** For each length of a matched prefix: the longest shorter prefix that is a suffix of it. */
  readonly fallback: readonly number[];
  /** Length of the form's prefix with which the text ends. */
  matched: number;
}

function prefixesOf(form: string): Pattern {
  const fallback = [0, 0];
  for (let length = 1, matched = 0; length < form.length; length += 1) {
    while (matched > 0 && form[length] !== form[matched]) matched = fallback[matched]!;
    if (form[length] === form[matched]) matched += 1;
    fallback.push(matched);
  }
  return { form, fallback, matched: 0 };
}

/** Whether this character completes the form. */
function advance(pattern: Pattern, code: number): boolean {
  const { form, fallback } = pattern;
  let { matched } = pattern;
  while (matched > 0 && form.charCodeAt(matched) !== code) matched = fallback[matched]!;
  if (form.charCodeAt(matched) === code) matched += 1;
  pattern.matched = matched;
  return matched === form.length;
}

function formsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const uri = encodeURIComponent(value.toWellFormed());
  const strict = uri.replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = new URLSearchParams([['', value]]).toString().slice(1);
  return [
    ...[value, json, ascii].flatMap((text) => [text, text.replaceAll('/', '\\/')]),
    ...[uri, strict, form].flatMap((text) => [text, text.replace(/%../g, (code) => code.toLowerCase())]),
  ];
}

/** Longer than any key. The forms of all secrets are one regular expression, whose size is limited. */
const ENCODED_MAX_CHARACTERS = 4096;
const ENCODED_MAX_TOTAL_CHARACTERS = 256 * 1024;
/** Short pieces would be found in other text. */
const ENCODED_MIN_CHARACTERS = 8;

/** In base64 and in hex, also within a longer text that is encoded as a whole, such as the user and password of basic authentication. */
function encodedForms(value: string): string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  // What comes before decides at which of three positions of a group the value begins, and changes the characters that it shares.
  const base64 = [0, 1, 2].map((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    return whole.toString('base64').slice(Math.ceil((before * 4) / 3), Math.floor((whole.length * 4) / 3));
  });
  const encoded = [
    hex,
    hex.toUpperCase(),
    ...base64.flatMap((text) => [text, urlSafe(text), encodeURIComponent(text)]),
  ];
  return encoded.filter(({ length }) => length >= ENCODED_MIN_CHARACTERS);
}

function urlSafe(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}
