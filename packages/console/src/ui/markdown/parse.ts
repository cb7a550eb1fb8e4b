/**
 * Markdown as tokens, read block by block while a text grows.
 *
 * A block at the top level never changes once another block follows it. So of a growing text only its last block is parsed again,
 * and blocks before it remain the same objects, which React skips. The text of a paragraph is parsed when it is rendered.
 * HTML is not a part of this Markdown: it stays text.
 */
import MarkdownIt, { type Token } from 'markdown-it';

export type { Token };

export interface Block {
  /** Where it begins in the text, which identifies it. */
  start: number;
  source: string;
  tokens: readonly Token[];
}

/** Targets of links `[label]: address`, by label. */
export type References = Record<string, { title: string; href: string }>;

/** Addresses that a link may have. Others, such as `javascript:`, `data:` and paths of the console, remain text. */
const linkable = /^(?:https?:\/\/|mailto:)/i;

function create() {
  const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true, typographer: false });
  markdown.validateLink = (address) => linkable.test(address.trim());
  // `example.com` and `file.py` are words.
  markdown.linkify.set({ fuzzyLink: false });
  return markdown;
}

const inlines = create();
const blocks = create();
// Their text is parsed when they are rendered.
blocks.core.ruler.enableOnly(['normalize', 'block', 'strip_references']);

/** Longer paragraphs are shown as they are written: reading their marks could take noticeable time. */
const MAX_PARAGRAPH_CHARACTERS = 20_000;

/** The text of a paragraph, heading or cell, or undefined if it is too long. */
export function parseInline(content: string, references: References): readonly Token[] | undefined {
  if (content.length > MAX_PARAGRAPH_CHARACTERS) return undefined;
  return inlines.parseInline(content, { references })[0]?.children ?? [];
}

/** Reads a text that may grow. */
export class MarkdownReader {
  /** The same object until they change. */
  references: References = {};
  #text = '';
  /** All blocks but the last, and what they define. */
  #closed: Block[] = [];
  #closedReferences: References = {};
  /** Where the last block begins. */
  #from = 0;
  #blocks: readonly Block[] = [];

  read(written: string): readonly Block[] {
    const text = written.replaceAll(/\r\n?/g, '\n');
    if (text === this.#text) return this.#blocks;
    if (!text.startsWith(this.#text)) {
      this.#closed = [];
      this.#closedReferences = {};
      this.#from = 0;
    }
    this.#text = text;
    const rest = text.slice(this.#from);
    const { blocks: found, references } = topLevel(rest, this.#from, this.#closedReferences);
    if (!isSame(references, this.references)) this.references = references;
    const last = found.at(-1);
    if (last && found.length > 1) {
      this.#closed = [...this.#closed, ...found.slice(0, -1)];
      const closed = rest.slice(0, last.start - this.#from);
      // Only what is defined here: a definition at the end may still grow.
      this.#closedReferences = topLevel(closed, 0, this.#closedReferences).references;
      this.#from = last.start;
    }
    this.#blocks = last ? [...this.#closed, last] : this.#closed;
    return this.#blocks;
  }
}

function isSame(some: References, other: References): boolean {
  const labels = Object.keys(some);
  return labels.length === Object.keys(other).length && labels.every((one) => some[one]!.href === other[one]?.href);
}

function topLevel(text: string, offset: number, known: References): { blocks: Block[]; references: References } {
  const references = { ...known };
  const tokens = blocks.parse(text, { references });
  const lines = lineStarts(text);
  const found: Block[] = [];
  let first = 0;
  for (const [index, { level, nesting }] of tokens.entries()) {
    if (level !== 0 || nesting === 1) continue;
    const [begin, end] = tokens[first]!.map ?? [0, 0];
    const start = lines[begin] ?? text.length;
    const source = text.slice(start, lines[end] ?? text.length);
    found.push({ start: offset + start, source, tokens: tokens.slice(first, index + 1) });
    first = index + 1;
  }
  return { blocks: found, references };
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}
