// Formats names, counts and untrusted text for display.

/** `refund_payment` → `Refund payment`; of an MCP tool, `shop__findOrder` → `Find order (shop)`. */
export function toolTitle(name: string): string {
  const [server, tool] = name.includes('__') ? splitOnce(name, '__') : ['', name];
  const words = tool
    .replaceAll(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .split(/[\s_.-]+/)
    .filter(Boolean)
    // Words in capitals are kept: `export_CSV`.
    .map((word, index) => (index > 0 && !/^\p{Lu}+$/u.test(word) ? word.toLowerCase() : word))
    .join(' ');
  if (words === '') return name;
  const sentence = words[0]!.toUpperCase() + words.slice(1);
  return server ? `${sentence} (${server})` : sentence;
}

function splitOnce(text: string, at: string): [string, string] {
  const index = text.indexOf(at);
  return [text.slice(0, index), text.slice(index + at.length)];
}

/** `1 approval`, `12,000 approvals`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : several}`;
}

/** `17 bytes`, `1.5 KiB`, `3.2 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return counted(bytes, 'byte');
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** The overview counts no further. */
const MAX_COUNT = 10_000;

/** A number of the overview: `12`, `10,000+`. */
export function capped(count: number): string {
  return count >= MAX_COUNT ? `${MAX_COUNT.toLocaleString('en')}+` : count.toLocaleString('en');
}

// Invisible and bidirectional control characters, which can make a text look like another one.
const unseen = /[[\p{Cc}\p{Cf}\u2028\u2029]--[\n\r\t\u200c\u200d]]/v;

/** Matches each of them. */
export function unseenCharacters(): RegExp {
  return new RegExp(unseen.source, 'gv');
}

/** Splits the text. Parts at odd positions are single invisible characters. */
export function splitInvisible(text: string): string[] {
  return unseen.test(text) ? text.split(new RegExp(`(${unseen.source})`, 'v')) : [text];
}

/** `U+202E` */
export function codePoint(character: string): string {
  return `U+${hex(character.codePointAt(0)!).toUpperCase()}`;
}

/** The same JSON value, with invisible characters as escapes such as `\u202e`. */
export function escapeInvisible(json: string): string {
  return json.replaceAll(new RegExp(unseen.source, 'gv'), (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
  );
}

function hex(code: number): string {
  return code.toString(16).padStart(4, '0');
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `17`, `1,204`, `16.4M`: a count in large type, in full up to a million. */
export function shortNumber(value: number): string {
  return value < 1_000_000 ? value.toLocaleString('en') : compact.format(value);
}

/** `0%`, `<0.1%`, `2.5%`, `98%` of a share. */
export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.05) return '<0.1%';
  if (value > 99.95 && value < 100) return '>99.9%';
  const isFine = (value !== 0 && value < 10) || (value > 99 && value < 100);
  return `${isFine ? value.toFixed(1) : Math.round(value).toLocaleString('en')}%`;
}
