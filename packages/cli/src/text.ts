// Text for a terminal.
import { eastAsianWidth } from 'get-east-asian-width';

/** Untrusted text, safe for a terminal: control characters and invisible characters become U+FFFD. */
export function shown(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/** The same, with line feeds kept. */
export function shownLines(text: string): string {
  return text.split('\n').map(shown).join('\n');
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
// One column each, up to the tilde.
const ascii = /^[\0-~]*$/;

/** How many columns a terminal needs for text without control characters. */
export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (/^\p{Mn}+$/u.test(grapheme)) return 0;
  // U+FE0F asks for the emoji, which is wide.
  return grapheme.includes('\ufe0f') ? 2 : eastAsianWidth(grapheme.codePointAt(0)!);
}

/** At most `width` columns of it; what is missing is an ellipsis. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += graphemeWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

/** Words in lines of at most `width` columns, without the first line's indentation. */
export function wrap(text: string, width: number, indent = 0): string {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let line = '';
    for (const word of paragraph.split(' ')) {
      if (line !== '' && widthOf(line) + 1 + widthOf(word) > width) {
        lines.push(line);
        line = word;
      } else line = line === '' ? word : `${line} ${word}`;
    }
    lines.push(line);
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

// A narrower second column is harder to read than one below the first.
const MIN_TEXT_WIDTH = 30;

/**
 * Lines of two columns, indented. The first is as wide as its widest cell, or as `leftWidth`. With `width`, the second is wrapped to it; if
 * there is no room for it, it goes below the first.
 */
export function columns(
  rows: readonly (readonly [string, string])[],
  { width = Number.POSITIVE_INFINITY, leftWidth = leftWidthOf(rows) }: { width?: number; leftWidth?: number } = {},
): string {
  const isBelow = width - leftWidth - 5 < MIN_TEXT_WIDTH;
  const indent = isBelow ? 6 : leftWidth + 5;
  const lines = rows.map(([left, right]) => {
    const start = isBelow ? `  ${left}\n${' '.repeat(indent)}` : `  ${padEnd(left, leftWidth)}   `;
    return `${start}${wrap(right, Math.max(width - indent, MIN_TEXT_WIDTH), indent)}`.trimEnd();
  });
  return lines.map((line) => `${line}\n`).join('');
}

export function leftWidthOf(rows: readonly (readonly [string, string])[]): number {
  return Math.max(0, ...rows.map(([left]) => widthOf(left)));
}

/** `1 message`, `2 messages`. */
export function counted(count: number, what: string, several = `${what}s`): string {
  return `${count} ${count === 1 ? what : several}`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
