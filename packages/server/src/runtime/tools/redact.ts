// Takes the values of secrets out of a text that a server sent: each as it is, and in the encodings in which a server that
// gives a request back would show it. What a server does beyond that (hashes, reversals) nobody can undo.

declare const redacted: unique symbol;
/**
 * Text that may be shown, logged and stored: a server's, after the secrets that it was sent were taken out, or our own words. Only
 * a `Redact` and `said` make one, so that the compiler finds a server's text that was not redacted.
 */
export type Redacted = string & { readonly [redacted]: true };

export type Redact = (text: string) => Redacted;

/** Our own words around what a server said: it takes no text of a server's that was not redacted. */
export function said(words: TemplateStringsArray, ...values: readonly (Redacted | number)[]): Redacted {
  return String.raw({ raw: words }, ...values) as Redacted;
}

/** `values` by name. A value becomes `[secret NAME]`. */
export function createRedaction(values: Readonly<Record<string, string>>): Redact {
  const nameOf = new Map<string, string>();
  for (const [name, value] of Object.entries(values)) {
    // Servers take the white space off a header's value.
    for (const whole of [value, value.trim()]) {
      for (const form of formsOf(whole)) if (form !== '' && !nameOf.has(form)) nameOf.set(form, name);
    }
  }
  if (nameOf.size === 0) return (text) => text as Redacted;
  // The longest first: a secret may be the beginning of another. In one pass, which does not look into its own marks.
  const forms = [...nameOf.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(forms.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
  return (text) => text.replace(pattern, (form) => markOf(nameOf.get(form)!)) as Redacted;
}

function markOf(name: string): string {
  return `[secret ${name}]`;
}

export interface StreamRedaction {
  /** The next piece of the text; returns what may be shown of it and of what was kept back before. */
  push(piece: string): Redacted;
  /** What was kept back: the text has ended, so it is not the beginning of a secret. */
  end(): Redacted;
  /** Whether so many secrets were taken out that the rest of the text is not looked at, and not shown. */
  readonly isTooMany: boolean;
}

/** A mark can be many times as long as its secret: without an end a short answer would become a very long one. */
const MAX_MARKS = 1000;

/**
 * The same for a text that comes in pieces, between which a secret may be split. What could be the beginning of a secret is kept
 * back until it is known. The work is in proportion to the text alone (Knuth–Morris–Pratt for each form), whatever the pieces and
 * however long the secret.
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
  /** For each length of a prefix that matched: the longest shorter one that is a suffix of it. */
  readonly fallback: readonly number[];
  /** How many characters of the form the text ends with. */
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

/** Whether the form is whole with this character. */
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
